"""The compiled kernels on three kinds of text, and the import that every start pays for."""

import random
from array import array

from hadano import limits, model
from hadano._native import classes, fuse, search_form, short_words, windows
from hadano._native.vectors import nearest, signs

#: 20,000 codepoints each.
TEXTS = {
    "ascii": ("The quick brown fox jumps over the lazy dog. " * 500)[:20_000],
    "latin": ("Grüße aus Łódź: un café très cher, ¿señor? " * 500)[:20_000],
    "japanese": ("東京都庁で会議。ガギグと日報、それから京都。" * 1_000)[:20_000],
}


class Text:
    params = tuple(TEXTS)
    param_names = ("text",)

    def setup(self, kind: str) -> None:
        self.text = TEXTS[kind]
        self.form = search_form(self.text)
        # Known texts answer from what CPython keeps beside a string; a new one is what is stored.
        self.fresh = self.text.encode()

    def time_windows(self, _: str) -> None:
        windows(self.text, limits.CHUNK_CODEPOINTS_MAX, limits.CHUNK_STRIDE_CODEPOINTS)

    def time_search_form(self, _: str) -> None:
        search_form(self.fresh.decode())

    def time_classes(self, _: str) -> None:
        classes(self.form)

    def time_short_words(self, _: str) -> None:
        short_words(self.form, False, False)


class Fuse:
    """A ranking of as many chunks as a common word has at 100,000 documents."""

    params = (1_000, 50_000)
    param_names = ("chunks",)

    def setup(self, chunks: int) -> None:
        self.chunks = array("q", range(chunks))
        self.docs = array("q", (chunk * 7919 % (chunks // 2) for chunk in range(chunks)))

    def time_fuse(self, _: int) -> None:
        fuse(
            self.chunks,
            self.docs,
            limits.CHUNKS_PER_DOC_DEFAULT,
            limits.FUSION_RANKS_MAX,
            limits.FUSION_CONSTANT,
            limits.TOP_K_DEFAULT,
        )


class Embed:
    """One chunk."""

    params = tuple(TEXTS)
    param_names = ("text",)

    def setup(self, kind: str) -> None:
        self.chunk = TEXTS[kind][: limits.CHUNK_CODEPOINTS_MAX]
        model.embed(self.chunk)  # the pages of the table that it needs

    def time_embed(self, _: str) -> None:
        model.embed(self.chunk)


class Nearest:
    """Vectors by chance, in blocks as vec0 has them."""

    def setup(self) -> None:
        chance = random.Random(1)
        self.blocks = []
        for first in range(0, 25_600, 256):
            vectors = chance.randbytes(256 * 256)
            ids = array("q", range(first, first + 256)).tobytes()
            self.blocks.append((b"\xff" * 32, ids, vectors, signs(vectors)))
        self.seeds = [chance.randbytes(256) for _ in range(limits.SEEDS_MAX)]

    def time_nearest_of_25600(self) -> None:
        nearest(self.blocks, self.seeds, limits.TOP_K_DEFAULT)


def timeraw_import_service() -> str:
    return "import hadano.service"
