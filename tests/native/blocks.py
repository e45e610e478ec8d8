"""Blocks of vectors as the file has them, for whoever asks the kernel what is near."""

import struct

from hadano._native.vectors import signs

Block = tuple[bytes, bytes, bytes, bytes]


def packed(vector: list[int]) -> bytes:
    return struct.pack("256b", *vector)


def block(held: dict[int, list[int]], gaps: bool = False) -> Block:
    """The vectors as a block, every second slot a deleted one if there are to be gaps."""
    ids: list[int] = []
    numbers: list[list[int]] = []
    valid = 0
    for id, vector in held.items():
        valid |= 1 << len(ids)
        ids += [id, 0] if gaps else [id]
        numbers += [vector, [1] * 256] if gaps else [vector]
    together = b"".join(map(packed, numbers))
    bits = valid.to_bytes(len(ids) // 8 + 1, "little")
    return bits, struct.pack(f"={len(ids)}q", *ids), together, signs(together)
