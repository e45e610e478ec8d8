"""What chance makes for the feeds of the fuzzer: text, values of JSON, and bytes that were mangled.

The same number gives the same things everywhere. Refuses to know who they are fed to.
"""

import random
from collections.abc import Callable
from typing import Any, Final

#: Takes the chance of its number; says what came of it.
Round = Callable[[random.Random], str]

ALPHABETS: Final = (
    range(0x20, 0x7F),
    range(0x100),
    range(0x300, 0x370),
    range(0x600, 0x700),
    range(0xE00, 0xE80),
    range(0x1100, 0x1200),
    range(0x2000, 0x2100),
    range(0x3040, 0x3100),
    range(0x4E00, 0x9FFF),
    range(0xAC00, 0xD7A4),
    range(0xD800, 0xE000),
    range(0xFB00, 0xFFFF),
    range(0x1F300, 0x1F700),
    range(0x110000),
)
COUNTS: Final = (0, 1, 2, 3, 7, 60, 799, 800, 801, 1_500, 5_000)
SCALARS: Final = (None, True, 0, -1, 1, 10.0, 1.5, 2**63, 2**64, -(2**70), 1e308, "", " ", "1")


def text(chance: random.Random, most: int = 5_000) -> str:
    count = min(chance.choice(COUNTS), most)
    alphabets = chance.sample(ALPHABETS, chance.randint(1, 3))
    made = "".join(chr(chance.choice(chance.choice(alphabets))) for _ in range(count))
    return made if chance.random() < 0.1 else _encodable(made)


def clean(chance: random.Random, most: int = 5_000) -> str:
    """Text that a document may have."""
    return _encodable(text(chance, most))


def _encodable(made: str) -> str:
    return made.encode(errors="ignore").decode().replace("\0", "")


def part(chance: random.Random, whole: str) -> str:
    """Eight letters or more, where there are as many."""
    start = chance.randrange(max(1, len(whole) - 8))
    return whole[start : start + chance.choice((9, 60, 900))]


def value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(6 if depth < 4 else 4)
    if kind < 2:
        return text(chance, 60)
    if kind < 4:
        return chance.choice(SCALARS)
    if kind == 4:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {text(chance, 7): value(chance, depth + 1) for _ in range(chance.randrange(4))}


def mutated(chance: random.Random, data: bytes) -> bytes:
    """Bytes replaced, taken out, doubled and put elsewhere."""
    out = bytearray(data)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(out) + 1)
        end = min(len(out), at + chance.choice((1, 1, 2, 8, 100)))
        piece = out[at:end]
        out[at:end] = chance.choice(
            (b"", piece * 2, chance.randbytes(len(piece)), bytes(reversed(piece)), b'"', b"{[" * 50)
        )
    return bytes(out)
