from mmap import mmap
from typing import final

@final
class Embedder:
    """Makes vectors by one table; may be used by several threads at once.

    `table` is the content of hadano/data/embedding.bin, which is neither copied nor read through:
    a memory map is ready at once. It has to begin at an address that 8 divides (maps and bytes do)
    and to stay as it is. Raises ValueError for what is no such table, has another version, or is
    not whole. Whether its numbers are the right ones is for its sha256 to tell.
    """

    def __new__(cls, table: bytes | bytearray | memoryview | mmap) -> Embedder: ...
    def embed(self, text: str) -> bytes:
        """The direction of a text: 256 signed bytes, the largest of them 127 or -127.

        It is the sum of the rows of the text's pieces; compare it by cosine. A text without a known
        piece has no direction, and 256 zeros. The same text gives the same bytes everywhere.
        """

    def pieces(self, text: str) -> list[int]:
        """The pieces that sentencepiece splits the text into, by their numbers in the vocabulary.

        0 is an unknown codepoint; of a run of them each has its own, where the sentencepiece
        package gives one for all. A lone surrogate is taken for U+FFFD, which is white space.

        Sentencepiece adds up scores in single precision, and so does this, lest near ties fall
        otherwise: past some ten thousand codepoints the sums are coarse, and the two have been
        seen to break such ties differently.
        """
