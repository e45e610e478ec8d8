"""Dump and restore: a state as lines of JSON, and back to the last codepoint."""

import io
import json
import os
import stat
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from hadano.connection import Connection
from hadano.dump import dump, restore
from hadano.errors import Code, HadanoError
from hadano.service import Service
from hadano.types import Settings
from tests.doors import kit


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "restored.db"


def restored(target: Path, text: bytes) -> object:
    return restore(str(target), io.BytesIO(text))


def state(path: Path) -> list[object]:
    """Every row that a document has or gives rise to, chunk ids included."""
    with closing(Connection(str(path), reading=True)) as db:
        return [
            db.rows(f"SELECT * FROM {table}")
            for table in ("docs", "chunks", "chunks_fts_docsize", "chunks_fts_data", "edges")
        ]


def test_the_header_comes_first_and_counts(source: Path) -> None:
    header = json.loads(kit.whole_dump(source).split(b"\n")[0])
    assert list(header) == ["format", "version", "docs", "edges", "time", "lines_sha256"]
    assert header["docs"] == len(kit.DOCUMENTS)
    assert header["edges"] == 2


def test_documents_ascend_and_their_fields_have_one_order(source: Path) -> None:
    lines = [json.loads(line) for line in kit.dumped(source)]
    assert [line["id"] for line in lines] == sorted(str(one["id"]) for one in kit.DOCUMENTS)
    assert {tuple(line) for line in lines} == {
        ("id", "title", "content", "tags", "relations", "sha256", "created_at", "updated_at")
    }


def test_a_dump_of_a_restored_dump_is_the_same_but_for_the_header(
    source: Path, target: Path
) -> None:
    restored(target, kit.whole_dump(source))
    assert kit.dumped(target) == kit.dumped(source)
    old, new = (json.loads(kit.whole_dump(path).split(b"\n")[0]) for path in (source, target))
    assert old | {"time": ""} == new | {"time": ""}


def test_what_was_restored_is_found_read_and_walked_as_before(source: Path, target: Path) -> None:
    restored(target, kit.whole_dump(source))

    def seen(path: Path) -> list[object]:
        with closing(Service(Settings(path=str(path)))) as service:
            answers = [
                kit.call(service, "search_documents", query=query)
                for query in ("fox", "東京", "会議 word", "pi\u00f1ata", "with everything")
            ]
            answers += [kit.call(service, "get_document", id=one["id"]) for one in kit.DOCUMENTS]
            answers.append(kit.call(service, "query_graph", node="hadano"))
        for answer in answers:
            del answer["request_id"]
        return answers

    assert seen(target) == seen(source)


def test_what_fills_a_store_leaves_its_index_in_one_segment(target: Path) -> None:
    def segments() -> int:
        with closing(Connection(str(target), reading=True)) as db:
            # A row of %_data has its segment's number above 37 bits (fts5_index.c).
            return db.value("SELECT count(DISTINCT id >> 37) FROM chunks_fts_data WHERE id > 10")

    letters = Random(1)
    texts = ["".join(letters.choices("abcdefghij ", k=30_000)) for _ in range(20)]
    lines = [kit.line(id=f"{n:02}", content=text) for n, text in enumerate(texts)]
    restored(target, kit.as_dump(*lines))
    assert segments() == 1
    restored(target, kit.as_dump(kit.line(id="one", content="is not worth rewriting all for")))
    assert segments() == 2


def test_restored_twice_changes_not_one_row(source: Path, target: Path) -> None:
    text = kit.whole_dump(source)
    restored(target, text)
    before = state(target)
    assert restored(target, text).same == len(kit.DOCUMENTS)
    assert state(target) == before


@pytest.mark.parametrize(
    "change",
    [
        {"title": "another"},
        {"content": "another"},
        {"tags": ["another"]},
        {"relations": [{"src": "a", "rel": "b", "dst": "c"}]},
        {"created_at": "2020-01-01T00:00:00.000Z"},
        {"updated_at": "2020-01-01T00:00:00.000Z"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_document_that_differs_in_one_field_is_replaced(
    target: Path, change: dict[str, object]
) -> None:
    restored(target, kit.as_dump(kit.line(tags=["old"])))
    outcome = restored(target, kit.as_dump(kit.line(tags=["old"]) | change))
    assert outcome.replaced == 1
    (line,) = kit.dumped(target)
    assert json.loads(line).items() >= change.items()


def test_relations_may_stand_in_any_order(target: Path) -> None:
    relations = [{"src": n, "rel": "is", "dst": n} for n in "cab"]
    restored(target, kit.as_dump(kit.line(relations=relations)))
    assert restored(target, kit.as_dump(kit.line(relations=relations[::-1]))).same == 1


def test_documents_that_the_dump_lacks_stay(source: Path) -> None:
    restored(source, kit.as_dump(kit.line(id="another")))
    assert len(kit.dumped(source)) == len(kit.DOCUMENTS) + 1


def test_replaced_text_is_overwritten_on_disk_and_in_the_audit_log(target: Path) -> None:
    secret = "Quetzalcoatlus-7741"
    kit.store(target, ({"id": "x", "title": "title", "content": f"about {secret} alone"},))
    assert secret.encode() in target.read_bytes()
    restored(target, kit.as_dump(kit.line()))
    left = b"".join(path.read_bytes() for path in target.parent.glob("restored.db*"))
    assert secret.encode() not in left
    assert secret.lower().encode() not in left


def test_a_large_replaced_text_is_overwritten_too(target: Path) -> None:
    secret = "Quetzalcoatlus"
    kit.store(target, ({"id": "x", "title": "title", "content": f"{secret} 7741. " * 3_000},))
    restored(target, kit.as_dump(kit.line()))
    with closing(Connection(str(target))) as db:
        assert db.rows("SELECT * FROM chores") == []
    assert secret.encode() not in target.read_bytes()


def test_nobody_sees_a_part_of_a_restore(source: Path) -> None:
    """A reader asks after each line that is read, and sees the old state to the end."""
    before = kit.dumped(source)
    seen = []

    class Watched(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            seen.append(kit.dumped(source) == before)
            return super().readline(size)

    text = kit.as_dump(*(kit.line(id=f"z{n}") for n in range(5)))
    restore(str(source), Watched(text))
    assert len(seen) == 7
    assert all(seen)
    assert len(kit.dumped(source)) == len(before) + 5


def test_a_dump_is_one_state_though_documents_change_while_it_is_written(source: Path) -> None:
    before = kit.dumped(source)
    lines: list[bytes] = []
    with (
        closing(Connection(str(source), reading=True)) as db,
        closing(Service(Settings(path=str(source)))) as service,
    ):

        def write(line: bytes) -> None:
            lines.append(line)
            kit.call(service, "store_document", id=f"z{len(lines)}", title="z", content="later")

        dump(db, write)
    assert lines[1:] == before


def bom(text: bytes) -> bytes:
    return b"\xef\xbb\xbf" + text


def crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


def no_last_end(text: bytes) -> bytes:
    return text.removesuffix(b"\n")


def blank_last_lines(text: bytes) -> bytes:
    return text + b"\n \n\r\n\n"


def blank_lines_between(text: bytes) -> bytes:
    return text.replace(b"\n", b"\n\n")


@pytest.mark.parametrize("form", [bom, crlf, no_last_end, blank_last_lines, blank_lines_between])
def test_what_editors_do_to_line_ends_is_read(source: Path, target: Path, form) -> None:
    restored(target, form(kit.whole_dump(source)))
    assert kit.dumped(target) == kit.dumped(source)


def test_separators_that_are_no_line_ends_come_back_untouched(target: Path) -> None:
    content = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\r\nh\ufeff"
    text = kit.as_dump(json.dumps(kit.line(content=content), ensure_ascii=False).encode())
    restored(target, text)
    assert json.loads(kit.dumped(target)[0])["content"] == content


def test_hashes_may_be_left_out_of_a_dump_that_is_edited_by_hand(target: Path) -> None:
    restored(target, kit.as_dump(kit.line()))
    assert len(kit.dumped(target)) == 1


def test_a_dump_ends_with_a_newline_and_is_for_its_owner_alone(
    source: Path, tmp_path: Path
) -> None:
    path = tmp_path / "x.jsonl"
    ended = kit.command("dump", "--db", source, "--out", path)
    assert ended.returncode == 0
    assert ended.stdout == b""
    assert b"audit log" in ended.stderr
    assert path.read_bytes().endswith(b"}\n")
    assert path.read_bytes().split(b"\n")[1:] == kit.whole_dump(source).split(b"\n")[1:]
    if os.name != "nt":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["notes.db", "x.jsonl"]


def test_a_dash_is_standard_output_and_standard_input(source: Path, target: Path) -> None:
    out = kit.command("dump", "--db", source, "--out", "-")
    back = kit.command("dump", "--restore", "--db", target, "--in", "-", stdin=out.stdout)
    assert (out.returncode, back.returncode) == (0, 0)
    assert kit.dumped(target) == kit.dumped(source)
    assert f"{len(kit.DOCUMENTS)} documents" in back.stdout.decode()


def test_a_dump_that_fails_leaves_the_old_one_in_place(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"the old one")
    with closing(Connection(str(source))) as db:
        db.run("UPDATE docs SET tags = 'no list'")
    ended = kit.command("dump", "--db", source, "--out", path)
    assert ended.returncode == 1
    assert path.read_bytes() == b"the old one"
    assert sorted(os.listdir(tmp_path)) == ["notes.db", "x.jsonl"]


def test_a_dump_never_goes_over_the_database_or_a_device(source: Path) -> None:
    before = source.read_bytes()
    for out in (source, os.devnull):
        ended = kit.command("dump", "--db", source, "--out", out)
        assert ended.returncode == 1
        assert ended.stderr.startswith(b"E_VALIDATION: --out: ")
    assert source.read_bytes() == before


def test_a_restore_waits_for_no_more_than_the_lock_and_then_says_so(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hadano import limits

    monkeypatch.setattr(limits, "BUSY_MS_MAX", 50)
    with (
        closing(Connection(str(source))) as other,
        other.change(),
        pytest.raises(HadanoError) as refused,
    ):
        restored(source, kit.as_dump(kit.line()))
    assert refused.value.code is Code.TIMEOUT
