"""SQLite's variable-length integers, as FTS5's records hold them."""


def varints(blob: bytes) -> list[int]:
    """The numbers in `blob`: seven bits a byte, the high bit says that more follow.

    Right for numbers of up to 56 bits, which is all that FTS5 counts with here.
    """
    numbers, number = [], 0
    for byte in blob:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers
