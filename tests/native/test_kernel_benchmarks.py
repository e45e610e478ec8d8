"""The kernels beside plain Python on the same input: `pytest tests/native -k benchmark
--benchmark-enable`. In a normal run each is called once, on short texts, and has to agree with its
plain rival.
"""

import unicodedata
from array import array
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hadano._native import classes, fuse, search_form, short_words, windows
from tests.native.texts import ASCII, CJK, LATIN_1
from tests.oracle import chunking, folding, merging

SIZES = {"1 KiB": 1024, "1 MiB": 1024 * 1024}
SAMPLES = {"ASCII": ASCII, "CJK": CJK, "Latin": LATIN_1}


def plain_form(text: str) -> str:
    """The nearest that the standard library has, in C but for this line; Latin marks stay."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


KERNELS: dict[str, tuple[Callable[..., object], Callable[..., object], tuple[object, ...]]] = {
    "windows": (windows, chunking.windows, (800, 700)),
    "search_form": (search_form, plain_form, ()),
    "classes": (classes, folding.classes, ()),
    "short_words": (short_words, folding.short_words, (False, False)),
}


def text_of(sample: str, size: int) -> str:
    """A text of so many bytes of UTF-8, or a few less."""
    encoded = sample.encode()
    return (encoded * (size // len(encoded) + 1))[:size].decode(errors="ignore")


@pytest.mark.parametrize("rival", ["kernel", "plain"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_benchmark_of_text_kernels(
    benchmark: BenchmarkFixture, kernel: str, sample: str, size: str, rival: str
) -> None:
    if benchmark.disabled and size == "1 MiB":
        pytest.skip("long texts are for measuring")
    compiled, plain, arguments = KERNELS[kernel]
    text = text_of(SAMPLES[sample], SIZES[size])
    benchmark.group = f"{kernel}, {sample}, {size}"
    found = benchmark(compiled if rival == "kernel" else plain, text, *arguments)
    if kernel != "search_form":
        assert found == compiled(text, *arguments)


@pytest.mark.parametrize("rival", ["kernel", "plain"])
@pytest.mark.parametrize("length", [100, 5000])
def test_benchmark_of_merging(benchmark: BenchmarkFixture, length: int, rival: str) -> None:
    chunks, docs = array("q", range(length)), array("q", (n * n % 997 for n in range(length)))
    benchmark.group = f"fuse, {length} chunks"
    found = benchmark(fuse if rival == "kernel" else merging.fuse, chunks, docs, 3, 1000, 60, 10)
    assert found == fuse(chunks, docs, 3, 1000, 60, 10)
