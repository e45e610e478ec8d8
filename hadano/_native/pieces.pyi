from typing import Self, final

@final
class Pieces:
    """The pieces of eight bytes of some texts, each text by itself."""

    def __new__(cls, texts: tuple[bytes, ...]) -> Self: ...
    def drop(self, text: bytes) -> None:
        """Takes the pieces of `text` out again."""

    def run(self, said: bytes, start: int, most: int) -> tuple[int, int] | None:
        """The first stretch of `said`, from `start` on, that is made of these pieces: of which
        every eight bytes in a row are one of them. Its start and end, as far apart as can be but no
        more than `most` bytes, eight or more; None where there is none.
        """

def beyond_ascii(lines: bytes) -> bytes:
    """What of some lines of UTF-8 is not ASCII, each stretch of it in a line of its own, with so
    much of what its line has beside it that to fold these lines gives every eight bytes that to
    fold `lines` gives, but for those that are ASCII there already."""

def lowered_lines(lines: bytes, without: bytes) -> bytes:
    """Those of some lines that have a piece, ASCII lowered, and without what they begin with if it
    is `without`."""

def other_lines(lines: bytes, than: bytes) -> bytes:
    """Those of some lines that have a piece and are not the same as the line at the same place of
    `than`."""
