from typing import Self, final

@final
class Pieces:
    """The pieces of eight bytes of some texts, each text by itself."""

    def __new__(cls, texts: tuple[bytes, ...]) -> Self: ...
    def drop(self, text: bytes) -> None:
        """Takes the pieces of `text` out again."""

    def runs(self, said: bytes) -> list[tuple[int, int]]:
        """Where `said` is made of these pieces: start and end of each stretch, as long as can be,
        of which every eight bytes in a row are one of them. Ascending; two may overlap by seven
        bytes, where the eight across their seam are none.
        """
