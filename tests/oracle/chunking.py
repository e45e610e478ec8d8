"""Windows as the contract words them (section 2), by slicing. Knows nothing of the kernel."""

import math


def windows(text: str, size: int, stride: int) -> list[str]:
    """Window i starts at stride * i; the last one ends with the text."""
    if len(text) <= size:
        return [text]
    count = 1 + math.ceil((len(text) - size) / stride)
    return [text[stride * i : stride * i + size] for i in range(count)]
