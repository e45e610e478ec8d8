"""The hatch of the compiled core, and how kernels behave when memory runs out."""

import gc
import importlib
import sys
import tracemalloc
from array import array
from collections.abc import Callable, Iterator

import pytest

from hadano import model
from hadano._native import Pieces, classes, fuse, search_form, short_words, windows
from hadano._native.vectors import nearest, signs

ACCENTED = "Crème brûlée c# ά한글 " * 2000
MARKS = "α" + "\u0301\u0323" * 2000
RANKING = array("q", range(5000))
VECTORS = bytes(range(256)) * 64
BLOCK = (bytes([255]) * 8, array("q", range(64)).tobytes(), VECTORS, signs(VECTORS))

CALLS: dict[str, Callable[[], object]] = {
    "windows": lambda: windows(ACCENTED, 800, 700),
    "search_form": lambda: search_form(ACCENTED),
    "search_form of marks": lambda: search_form(MARKS),
    "classes": lambda: classes(ACCENTED),
    "short_words": lambda: short_words(ACCENTED, False, False),
    "fuse": lambda: fuse(RANKING, RANKING, 3, 1000, 60, 100),
    "pieces": lambda: Pieces((ACCENTED.encode(),)).run(
        MARKS.encode() + ACCENTED.encode()[9:], 0, 99
    ),
    "embed": lambda: model.embed(ACCENTED),
    "signs": lambda: signs(VECTORS),
    "nearest": lambda: nearest([BLOCK], [VECTORS[:256], VECTORS[256:512]], 20),
}


@pytest.mark.parametrize(
    ("hatch", "kernel"),
    [("hadano._native", "hadano._native.fold"), ("hadano._native.vectors", "hadano._native.near")],
)
def test_missing_compiled_code_stops_with_one_helpful_sentence(
    hatch: str, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, hatch)
    monkeypatch.setitem(sys.modules, kernel, None)  # type: ignore[arg-type]
    with pytest.raises(ImportError, match=r"compiled core.*`pip install -e \.`") as refused:
        importlib.import_module(hatch)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_kernels_give_back_all_memory(call: Callable[[], object]) -> None:
    call()
    tracemalloc.start()
    try:
        call()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(20):
            call()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2000


@pytest.fixture
def alone() -> Iterator[None]:
    """No other thread, as pytest-xdist has one, gets to run between two lines of Python, to meet
    the allocation that fails."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_whichever_allocation_fails_the_kernel_says_so_and_works_again(
    call: Callable[[], object],
) -> None:
    testcapi = pytest.importorskip("_testcapi", reason="this Python cannot make allocations fail")
    expected = call()
    refused = 0
    for passed in range(30):
        # Counts what passes before it: a kernel may have one allocation, which is then the first.
        testcapi.set_nomemory(passed, passed + 1)
        try:
            found = call()
        except MemoryError:
            refused += 1
            continue
        finally:
            testcapi.remove_mem_hooks()
        assert found == expected
    assert refused > 0
    assert call() == expected
