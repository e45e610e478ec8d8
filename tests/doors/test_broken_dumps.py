"""A broken dump is refused in one line, with the right code, and changes nothing."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hadano import limits
from hadano.dump import restore
from hadano.errors import HadanoError
from tests.doors import kit


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all: no test here may change it."""
    return kit.store(tmp_path_factory.mktemp("broken") / "target.db")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A good dump of documents that the target has not, and of one that it would replace."""
    path = tmp_path_factory.mktemp("good") / "source.db"
    documents = [
        {"id": f"n{n}", "title": f"note {n}", "content": f"text of note {n}: 東京 {n * n}"}
        for n in range(20)
    ]
    relations = [{"src": "a", "rel": "b", "dst": "c"}]
    documents += [{"id": "a", "title": "new", "content": "new", "relations": relations}]
    return kit.whole_dump(kit.store(path, tuple(documents)))


def refusal(target: Path, text: bytes) -> HadanoError:
    """The refusal of a restore that must fail and leave no trace in a dump of the store."""
    before = kit.dumped(target)
    with pytest.raises(HadanoError) as refused:
        restore(str(target), io.BytesIO(text))
    assert kit.dumped(target) == before
    return refused.value


def header_end(text: bytes) -> int:
    return text.index(b"\n") + 1


@pytest.mark.parametrize("seed", range(12))
def test_a_dump_cut_anywhere_is_refused(target: Path, text: bytes, seed: int) -> None:
    at = int(Random(f"cut/{seed}").random() * (len(text) - 1))
    error = refusal(target, text[:at])
    whole_lines = text[at - 1 : at] in (b"\n", b"}") and at >= header_end(text) - 1
    assert error.code == ("E_INTEGRITY" if whole_lines else "E_VALIDATION"), error


@pytest.mark.parametrize("last", range(1, 5))
def test_a_dump_cut_between_lines_does_not_match_its_header(
    target: Path, text: bytes, last: int
) -> None:
    lines = text.splitlines(keepends=True)
    error = refusal(target, b"".join(lines[:-last]))
    assert error.code == "E_INTEGRITY"
    assert "header" in error.message


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_after_the_header_is_refused(target: Path, text: bytes, seed: int) -> None:
    random = Random(f"flip/{seed}")
    start = header_end(text)
    broken = bytearray(text)
    # The last newline may be missing, and so may be anything white.
    at = start + int(random.random() * (len(text) - start - 1))
    broken[at] ^= 1 << int(random.random() * 8)
    error = refusal(target, bytes(broken))
    assert error.code in ("E_VALIDATION", "E_INTEGRITY"), error


@pytest.mark.parametrize("seed", range(8))
def test_lines_in_another_order_are_refused(target: Path, text: bytes, seed: int) -> None:
    header, *lines = text.splitlines(keepends=True)
    random = Random(f"order/{seed}")
    one, other = (int(random.random() * len(lines)) for _ in range(2))
    other += one == other
    other %= len(lines)
    lines[one], lines[other] = lines[other], lines[one]
    error = refusal(target, header + b"".join(lines))
    assert error.code == "E_VALIDATION"
    assert error.message.startswith(f"line {min(one, other) + 3}: id: ")


def test_a_header_that_is_not_first_is_no_header(target: Path, text: bytes) -> None:
    header, *lines = text.splitlines(keepends=True)
    error = refusal(target, b"".join([*lines, header]))
    assert (error.code, error.message[:8]) == ("E_VALIDATION", "line 1: ")


@pytest.mark.parametrize("field", ["docs", "edges"])
@pytest.mark.parametrize("off", [-1, 1, 1_000_000_000])
def test_a_header_with_wrong_counts_is_refused(
    target: Path, text: bytes, field: str, off: int
) -> None:
    header, rest = text.split(b"\n", 1)
    fields = json.loads(header)
    fields[field] += off
    assert refusal(target, json.dumps(fields).encode() + b"\n" + rest).code == "E_INTEGRITY"


@pytest.mark.parametrize(
    ("header", "code", "says"),
    [
        ({"version": 2}, "E_VALIDATION", "version: 2"),
        ({"version": "1"}, "E_VALIDATION", "header"),
        ({"format": "other"}, "E_VALIDATION", "format"),
        ({"docs": "1"}, "E_VALIDATION", "docs"),
        ({"docs": -1}, "E_INTEGRITY", "-1"),
        ({"time": "yesterday"}, "E_VALIDATION", "time"),
        ({"new": 1}, "E_VALIDATION", "new"),
        ({"lines_sha256": "0" * 64}, "E_INTEGRITY", "lines_sha256"),
    ],
)
def test_a_header_of_another_kind_is_refused(
    target: Path, header: dict[str, Any], code: str, says: str
) -> None:
    error = refusal(target, kit.as_dump(kit.line(), **header))
    assert error.code == code
    assert says in error.message


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"id": 7}, "E_VALIDATION", "id"),
        ({"id": " "}, "E_VALIDATION", "id"),
        ({"id": "a\nb"}, "E_VALIDATION", "id"),
        ({"id": "x" * 257}, "E_VALIDATION", "id"),
        ({"title": ""}, "E_VALIDATION", "title"),
        ({"title": None}, "E_VALIDATION", "title"),
        ({"title": "x" * 513}, "E_TOO_LARGE", "title"),
        ({"content": "a\0b"}, "E_VALIDATION", "content"),
        ({"content": ["text"]}, "E_VALIDATION", "content"),
        ({"content": "x" * (limits.CONTENT_BYTES_MAX + 1)}, "E_TOO_LARGE", "content"),
        ({"tags": ["a", "a"]}, "E_VALIDATION", "tags"),
        ({"tags": "a"}, "E_VALIDATION", "tags"),
        ({"tags": ["x" * 65]}, "E_TOO_LARGE", "tags[0]"),
        ({"tags": [str(n) for n in range(21)]}, "E_TOO_LARGE", "tags"),
        ({"relations": [{"src": "a", "rel": "b"}]}, "E_VALIDATION", "dst"),
        ({"relations": [{"src": "a", "rel": "b" * 65, "dst": "c"}]}, "E_TOO_LARGE", "rel"),
        ({"sha256": "0" * 64}, "E_INTEGRITY", "sha256"),
        ({"created_at": "2026-02-30T00:00:00.000Z"}, "E_VALIDATION", "created_at"),
        ({"created_at": "2026-01-31 23:59:59.999Z"}, "E_VALIDATION", "created_at"),
        ({"updated_at": "2026-01-31T23:59:59.999+09:00"}, "E_VALIDATION", "updated_at"),
        ({"updated_at": None}, "E_VALIDATION", "updated_at"),
        ({"size": 7}, "E_VALIDATION", "size"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_bad_line_is_named_by_its_number(
    target: Path, change: dict[str, Any], code: str, says: str
) -> None:
    bad = kit.line(id="x") | change
    bad = {name: value for name, value in bad.items() if value is not None}
    error = refusal(target, kit.as_dump(kit.line(id="w"), bad))
    assert error.code == code
    assert error.message.startswith("line 3: ")
    assert says in error.message


def two_on_one_line(good: bytes) -> bytes:
    return good + good


def half(good: bytes) -> bytes:
    return good[: len(good) // 2]


def nothing_in_it(_: bytes) -> bytes:
    return b"{}"


def latin_1(_: bytes) -> bytes:
    return json.dumps(kit.line(title="caf\u00e9"), ensure_ascii=False).encode("latin-1")


def lone_surrogate(_: bytes) -> bytes:
    return json.dumps(kit.line(title="cut \ud83d here")).encode()


def no_object(_: bytes) -> bytes:
    return b"[1, 2]"


def deep(_: bytes) -> bytes:
    return b"[" * 100_000


@pytest.mark.parametrize(
    "form", [two_on_one_line, half, nothing_in_it, latin_1, lone_surrogate, no_object, deep]
)
def test_a_line_that_is_no_document_is_named_by_its_number(
    target: Path, form: Callable[[bytes], bytes]
) -> None:
    good = json.dumps(kit.line()).encode()
    error = refusal(target, kit.as_dump(kit.line(id="w"), form(good)))
    assert error.code == "E_VALIDATION"
    assert error.message.startswith("line 3: ")


def test_a_line_twice_is_refused(target: Path) -> None:
    error = refusal(target, kit.as_dump(kit.line(), kit.line()))
    assert (error.code, error.message[:12]) == ("E_VALIDATION", "line 3: id: ")


def test_a_line_without_an_end_is_not_read_into_memory(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "JSON_LINE_BYTES_MAX", 1_000)
    error = refusal(target, kit.as_dump(b"x" * 1_001))
    assert (error.code, error.message[:8]) == ("E_TOO_LARGE", "line 2: ")


@pytest.mark.parametrize(
    "text", [b"", b"\n\n", b"\x1f\x8b\x08\x00\x00", b"{}", b"null", b"SQLite format 3\0" * 9]
)
def test_a_file_that_is_no_dump_is_refused(target: Path, text: bytes) -> None:
    error = refusal(target, text)
    assert error.code == "E_VALIDATION"
    assert "header of a Hadano dump" in error.message


def test_a_refused_dump_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(HadanoError):
        restore(str(tmp_path / "new.db"), io.BytesIO(b"no dump"))
    assert list(tmp_path.iterdir()) == []


def test_a_dump_that_breaks_half_way_makes_no_file(tmp_path: Path) -> None:
    broken = kit.as_dump(kit.line(), kit.line(id="y", title=1))
    with pytest.raises(HadanoError, match="line 3"):
        restore(str(tmp_path / "new.db"), io.BytesIO(broken))
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_somebody_makes_meanwhile_is_left_alone(tmp_path: Path) -> None:
    class Slow(io.BytesIO):
        def readline(self, most: int | None = -1) -> bytes:
            if self.tell():  # the header has been read
                (tmp_path / "new.db").write_bytes(b"theirs")
            return super().readline(most)

    with pytest.raises(HadanoError, match="meanwhile") as refused:
        restore(str(tmp_path / "new.db"), Slow(kit.as_dump(kit.line())))
    assert refused.value.code == "E_VALIDATION"
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"theirs"]
