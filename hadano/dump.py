"""`python -m hadano.dump`: the documents as lines of JSON, and back.

A dump is a state, not a history: what an agent stored, with its times, and nothing that can be
made again from it. The audit log and the vectors are left out: a restore makes vectors again where
HADANO_EMBEDDINGS is local. The first line is a header, then comes a document a line, ids ascending
by codepoint, fields in one order: two dumps of one state differ in the header's time alone, and
`diff` compares any two.

    {"format": "hadano-dump", "version": 1, "docs": 2, "edges": 1, "time": ..., "lines_sha256": ...}
    {"id": ..., "title": ..., "content": ..., "tags": [...], "relations": [{"src", "rel", "dst"}],
     "sha256": ..., "created_at": ..., "updated_at": ...}

`lines_sha256` is the SHA-256 of the lines after the header, each with its newline. It and a
document's `sha256` may be taken out, for a dump that is edited by hand. Refuses to know how a
document is indexed (ingest.py) and what a good one is (validate.py).
"""

import argparse
import contextlib
import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import chain
from typing import IO, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from hadano import audit, console, files, ingest, limits, schema, validate, vectors
from hadano.connection import Connection
from hadano.digest import sha256_of
from hadano.errors import Code, HadanoError, SettingsError, invalid
from hadano.said import Said
from hadano.types import EmbeddingsMode, Relation, StoreDocument, embeddings_mode

FORMAT: Final = "hadano-dump"
VERSION: Final = 1

S = TypeVar("S", bound=Struct)

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_BOM: Final = b"\xef\xbb\xbf"


class _Kind(Struct):
    """What every version's header says."""

    format: str
    version: int


class _Header(_Kind, kw_only=True, forbid_unknown_fields=True):
    docs: int
    edges: int
    time: str
    lines_sha256: str | UnsetType = UNSET


class _Line(Struct, kw_only=True, forbid_unknown_fields=True):
    """A document, its fields in the order in which they are written."""

    id: str
    title: str
    content: str
    tags: list[str]
    relations: list[Relation]
    sha256: str | UnsetType = UNSET
    created_at: str
    updated_at: str


_decode_line: Final = msgspec.json.Decoder(_Line).decode
_encode: Final = msgspec.json.Encoder().encode


# Out.


def dump(db: Connection, write: Callable[[bytes], object]) -> None:
    """Writes the documents, as they are at this moment, however long that takes.

    The header comes first and holds the hash of what follows, so the documents are read twice;
    memory holds one of them at a time.
    """
    with db.snapshot():
        docs = db.value("SELECT count(*) FROM docs")
        edges = db.value("SELECT count(*) FROM edges")
        digest = hashlib.sha256()
        with console.Progress("dumping", 2 * docs, "rows") as progress:
            for done, line in enumerate(_lines_out(db), 1):
                digest.update(line)
                progress.reach(done)
            header = _Header(
                format=FORMAT,
                version=VERSION,
                docs=docs,
                edges=edges,
                time=ingest.now(),
                lines_sha256=digest.hexdigest(),
            )
            write(_encode(header) + b"\n")
            for done, line in enumerate(_lines_out(db), docs + 1):
                write(line)
                progress.reach(done)


def _lines_out(db: Connection) -> Iterator[bytes]:
    """Every document as a line, in the order of ids that the unique index on them has."""
    for id, title, content, tags, sha256, created_at, updated_at in db.stream(
        "SELECT id, title, content, tags, sha256, created_at, updated_at FROM docs ORDER BY id"
    ):
        line = _Line(
            id=id,
            title=title,
            content=content,
            tags=msgspec.json.decode(tags),
            relations=[
                Relation(src=src, rel=rel, dst=dst) for src, rel, dst in ingest.relations_of(db, id)
            ],
            sha256=sha256,
            created_at=created_at,
            updated_at=updated_at,
        )
        yield _encode(line) + b"\n"


# In.


class _Reader:
    """The lines of a dump that are not blank: numbered as an editor does, counted and hashed.

    Lines end at U+000A alone: U+2028, U+0085 and their kind are text. A byte order mark, CRLF and
    a last line without an end are read as if they were not there.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.number = 0
        self.digest = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        while line := self._stream.readline(limits.JSON_LINE_BYTES_MAX + 1):
            self.number += 1
            if len(line) > limits.JSON_LINE_BYTES_MAX:
                raise HadanoError(
                    Code.TOO_LARGE, f"the line is longer than {limits.JSON_LINE_BYTES_MAX:,} bytes"
                )
            line = line.removeprefix(_BOM) if self.number == 1 else line
            if line := line.strip():
                self.digest.update(line + b"\n")
                yield line

    @contextmanager
    def naming_lines(self) -> Iterator[None]:
        """Errors of what is done inside say which line they are about."""
        try:
            yield
        except HadanoError as error:
            raise HadanoError(error.code, f"line {self.number}: {error.message}") from error


class Restored(Struct):
    """What became of a dump's documents."""

    new: int = 0
    replaced: int = 0
    same: int = 0
    edges: int = 0

    @property
    def docs(self) -> int:
        return self.new + self.replaced + self.same


def restore(path: str, stream: IO[bytes], embeddings: EmbeddingsMode = "off") -> Restored:
    """Brings a dump's documents into the database at `path`, all of them or, on any error, none;
    their vectors too, where `embeddings` is local. A new database appears whole or not at all.

    Documents of other ids stay; those of the same id are replaced, and left untouched where
    nothing about them differs. Raises HadanoError: E_VALIDATION and E_TOO_LARGE as store_document
    does, with the number of the line, for what is no dump of a known version, and where somebody
    else made the new database meanwhile; E_INTEGRITY for a dump that does not match its header or
    its hashes; E_TIMEOUT where another process does not let go of the database.
    """
    reader = _Reader(stream)
    lines = iter(reader)
    with reader.naming_lines():
        header = _header(next(lines, b""))
        reader.digest = hashlib.sha256()
    if not files.is_free(path):
        return _restore_into(path, reader, lines, header, embeddings)
    folder, name = os.path.split(path)
    with files.draft(folder, name) as draft:
        restored = _restore_into(draft, reader, lines, header, embeddings)
        if not files.publish_new(draft, path):
            raise HadanoError(Code.VALIDATION, "the database was made by another meanwhile")
    return restored


def _restore_into(
    path: str,
    reader: _Reader,
    lines: Iterator[bytes],
    header: _Header,
    embeddings: EmbeddingsMode,
) -> Restored:
    with closing(_opened(path, embeddings)) as db:
        db.run(schema.BULK_PRAGMAS)
        with db.change():
            if db.vectors:
                vectors.set_up(db)
            before = db.value("SELECT count(*) FROM docs")
            restored = _restore_lines(db, reader, lines, header)
            if restored.new > before:
                ingest.merge_index(db)
        _finish(db, restored)
    return restored


def _opened(path: str, embeddings: EmbeddingsMode) -> Connection:
    embedding = embeddings == "local"
    if embedding:
        vectors.load()
    return Connection(path, vectors=embedding)


def _header(line: bytes) -> _Header:
    try:
        kind = msgspec.json.decode(line, type=_Kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise HadanoError(Code.VALIDATION, "the header of a Hadano dump is missing") from None
    if kind.format != FORMAT:
        raise invalid("format", f"a dump says {FORMAT} there")
    if kind.version != VERSION:
        raise invalid("version", f"{kind.version}, where this Hadano reads {VERSION}")
    header = _decoded(msgspec.json.Decoder(_Header).decode, line)
    _moment("time", header.time)
    return header


def _restore_lines(
    db: Connection, reader: _Reader, lines: Iterator[bytes], header: _Header
) -> Restored:
    restored = Restored()
    with console.Progress("restoring", header.docs, "rows") as progress:
        for line, it in _checked(reader, lines):
            _restore_line(db, line, it, restored)
            progress.reach(restored.docs)
    for what, stated, found in (
        ("documents", header.docs, restored.docs),
        ("relations", header.edges, restored.edges),
    ):
        if stated != found:
            raise HadanoError(
                Code.INTEGRITY, f"the header states {stated:,} {what}, the dump holds {found:,}"
            )
    if header.lines_sha256 not in (UNSET, reader.digest.hexdigest()):
        raise HadanoError(Code.INTEGRITY, "the lines are not those that lines_sha256 was made of")
    return restored


def _checked(reader: _Reader, lines: Iterator[bytes]) -> Iterator[tuple[_Line, StoreDocument]]:
    """The lines as documents that can be trusted; an error names its line, and only here."""
    last_id = ""
    with reader.naming_lines():
        for text in lines:
            line = _decoded(_decode_line, text)
            if line.id <= last_id:
                raise invalid("id", "not after that of the line before: ids ascend, each once")
            last_id = line.id
            yield line, _document(line)


def _document(line: _Line) -> StoreDocument:
    it = StoreDocument(
        id=line.id,
        title=line.title,
        content=line.content,
        tags=line.tags,
        relations=line.relations,
    )
    validate.document(it)
    _moment("created_at", line.created_at)
    _moment("updated_at", line.updated_at)
    if line.sha256 not in (UNSET, sha256_of(line.content)):
        raise HadanoError(Code.INTEGRITY, "sha256: not that of the content")
    return it


def _restore_line(db: Connection, line: _Line, it: StoreDocument, restored: Restored) -> None:
    became, gone = ingest.restore(db, line.id, it, line.created_at, line.updated_at)
    match became:
        case "same":
            restored.same += 1
        case "new":
            restored.new += 1
        case "replaced":
            restored.replaced += 1
    if gone is not None:
        audit.scrub(db, line.id)
        audit.owe(db, gone)
    restored.edges += len(line.relations)


def _finish(db: Connection, restored: Restored) -> None:
    """Overwrites what was replaced, makes vectors that others owe, and empties the log, which one
    large transaction has filled.

    The documents are in; what fails here stays owed, and a server that is running, or the next to
    start, does it."""
    with contextlib.suppress(HadanoError):
        if restored.replaced:
            forgotten = audit.forget_owed(db, Said(room=0))
            for _ in chain(forgotten, ingest.erase_owed(db, limits.MERGE_PAGES)):
                if db.wal_pages > limits.WAL_PAGES_MAX:
                    db.checkpoint(truncate=False)
        if db.vectors:
            for _ in vectors.keep(db):
                pass
        db.checkpoint(truncate=True)


def _decoded(decode: Callable[[bytes], S], line: bytes) -> S:
    try:
        return decode(line)
    except msgspec.DecodeError as error:
        raise validate.refusal(error) from None
    except UnicodeDecodeError:
        raise HadanoError(Code.VALIDATION, "is not UTF-8") from None


def _moment(field: str, text: str) -> None:
    try:
        if not _TIME.fullmatch(text):
            raise ValueError
        datetime.fromisoformat(text)
    except ValueError:
        raise invalid(field, "not a time like 2026-01-31T23:59:59.999Z") from None


# The command.


def _dump_to(source: str, given: str) -> None:
    with closing(Connection(source, reading=True)) as db:
        if given == "-":
            dump(db, sys.stdout.buffer.write)
        else:
            _dump_to_file(db, source, os.path.realpath(os.path.expanduser(given)))
    print("a dump leaves the audit log and the vectors out", file=sys.stderr)


def _dump_to_file(db: Connection, source: str, path: str) -> None:
    folder, name = os.path.split(path)
    console.folder("--out", folder)
    if os.path.exists(path) and not os.path.isfile(path):
        raise invalid("--out", f"{path} is no file; - is standard output")
    if os.path.exists(path) and os.path.samefile(path, source):
        raise invalid("--out", "names the database itself")
    with files.draft(folder, name) as draft:
        with open(draft, "wb") as stream:
            dump(db, stream.write)
        files.publish(draft, path)


def _restore_from(given: str, path: str, embeddings: EmbeddingsMode) -> None:
    with console.reading("--in", given) as stream:
        restored = restore(path, stream, embeddings)
    print(
        f"{restored.docs:,} documents: {restored.new:,} new, {restored.replaced:,} replaced, "
        f"{restored.same:,} unchanged"
    )


def main(argv: list[str] | None = None) -> int:
    """The command; gives its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m hadano.dump",
        description="Writes the documents of a Hadano database as lines of JSON, or reads them "
        "back with --restore. Servers may be running. The audit log and the vectors are left out.",
        epilog="Restoring replaces documents of the same id, keeps their times, and deletes "
        "nothing that the dump lacks. On any error nothing is changed. HADANO_EMBEDDINGS: with "
        "local, vectors are made too (off).",
    )
    parser.add_argument("--db", required=True, metavar="FILE", help="the database")
    parser.add_argument("--restore", action="store_true", help="read a dump into the database")
    files_ = parser.add_mutually_exclusive_group(required=True)
    files_.add_argument("--out", metavar="FILE", help="the dump to write; - is standard output")
    files_.add_argument(
        "--in", dest="source", metavar="FILE", help="the dump to restore; - is standard input"
    )

    def work(arguments: argparse.Namespace) -> None:
        if arguments.restore != (arguments.source is not None):
            parser.error("--in and --restore go together; a dump takes --out")
        path = console.database("--db", arguments.db)
        if not arguments.restore:
            return _dump_to(path, arguments.out)
        try:
            embeddings = embeddings_mode()
        except SettingsError as error:
            parser.error(str(error))
        return _restore_from(arguments.source, path, embeddings)

    return console.run(parser, work, argv)


if __name__ == "__main__":
    sys.exit(main())
