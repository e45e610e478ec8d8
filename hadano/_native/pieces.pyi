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
