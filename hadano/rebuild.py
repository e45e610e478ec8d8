"""`python -m hadano.rebuild`: a new file from the documents of a damaged one.

What is derived (chunks, the full-text index, vectors) is made again; documents, relations and the
audit log are copied, and each content is held to its hash. The damaged file is only read: whatever
else it holds may still be wanted, and servers may have it open. Refuses to know how a document is
indexed (ingest.py).
"""

import argparse
import os
import sys
from contextlib import closing
from typing import Final

import msgspec

from hadano import console, files, ingest, schema, status
from hadano.connection import Connection, Row
from hadano.digest import sha256_of
from hadano.errors import Code, HadanoError
from hadano.types import Relation, StoreDocument

_DOCUMENTS: Final = (
    "SELECT id, title, content, tags, sha256, created_at, updated_at FROM docs ORDER BY n"
)
#: The audit log, and what is still to be taken out of it; files of version 1 have no such table.
_AUDIT: Final = (
    "SELECT name FROM sqlite_schema WHERE name IN ('audit_log', 'forgetting') ORDER BY name"
)
#: Chunk ids are never used twice, in the new file neither.
_LAST_CHUNK: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'chunks'"


def rebuild(source: str, folder: str) -> tuple[str, int, bool]:
    """Makes `name-rebuilt-YYYYMMDDTHHMMSSZ.db` in `folder` from the file at `source`, with a number
    where that name is taken; gives its path, how many documents it holds, and whether the audit log
    could be read.

    The new file is checked before it gets its name. Raises HadanoError: E_VALIDATION where the
    source is missing or no database of ours, E_INTEGRITY where its documents or relations cannot
    be read or a text is not that of its hash, E_INTERNAL where the disk is full; OSError where
    files cannot be made.
    """
    name = os.path.splitext(os.path.basename(source))[0] + "-rebuilt"
    stamped = files.stamped(name)
    with files.draft(folder, name) as path:
        with closing(Connection(source, reading=True)) as old, closing(Connection(path)) as new:
            new.run(schema.BULK_PRAGMAS)
            with new.change():
                with old.snapshot():
                    docs = _copy_documents(old, new)
                ingest.merge_index(new)
                # A transaction that met a damaged tree fails at its end, too.
                audit = _copy_audit_log(old, new)
            new.checkpoint(truncate=True)
            if not (new.structure_holds() and status.index_agrees(new)):
                raise HadanoError(Code.INTEGRITY, "the rebuilt file is not sound either")
        return files.publish_numbered(path, folder, stamped), docs, audit


def _copy_documents(old: Connection, new: Connection) -> int:
    """Copies the documents with their relations; how many."""
    total = old.value("SELECT count(*) FROM docs")
    new.run(
        "INSERT INTO sqlite_sequence(name, seq) VALUES('chunks', ?)", (old.value(_LAST_CHUNK) or 0,)
    )
    done = 0
    with console.Progress("rebuilding", total, "rows") as progress:
        for done, row in enumerate(old.stream(_DOCUMENTS), 1):
            _copy_document(old, new, row)
            progress.reach(done)
    # A damaged tree can end early, and say nothing.
    if done != total or new.value(_EDGES) != old.value(_EDGES):
        raise HadanoError(Code.INTEGRITY, "documents or relations are damaged: some are missing")
    return done


_EDGES: Final = "SELECT count(*) FROM edges"


def _copy_document(old: Connection, new: Connection, row: Row) -> None:
    id, title, content, tags, sha256, created_at, updated_at = row
    if sha256_of(content) != sha256:
        raise HadanoError(Code.INTEGRITY, f"the text of document {id!r} is not that of its hash")
    document = StoreDocument(
        id=id,
        title=title,
        content=content,
        tags=msgspec.json.decode(tags, type=list[str]),
        relations=[Relation(src=a, rel=rel, dst=b) for a, rel, b in ingest.relations_of(old, id)],
    )
    ingest.restore(new, id, document, created_at, updated_at)


def _copy_audit_log(old: Connection, new: Connection) -> bool:
    """Copies the audit log, as far as it goes; False where it cannot be read to its end."""
    try:
        for (table,) in old.rows(_AUDIT):
            for row in old.stream(f"SELECT * FROM {table} ORDER BY n"):
                new.run(f"INSERT INTO {table} VALUES({', '.join('?' * len(row))})", row)
    except HadanoError as error:
        if error.code is not Code.INTEGRITY:
            raise
        return False
    return True


def _work(arguments: argparse.Namespace) -> None:
    source = console.database("--db", arguments.db)
    folder = console.folder("--out", arguments.out or os.path.dirname(source))
    path, docs, audit = rebuild(source, folder)
    print(path)
    print(f"{docs:,} documents", file=sys.stderr)
    if not audit:
        print("the audit log is damaged: its readable rows alone were copied", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """The command; gives its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m hadano.rebuild",
        description="Makes a new Hadano database from the documents of a damaged one; chunks and "
        "indexes are made again. The damaged file is not changed; the path of the new one is "
        "printed.",
        epilog="To use it: stop every server, move the damaged database and the files named like "
        "it with -wal and -shm at the end away, and put the new one in its place.",
    )
    parser.add_argument("--db", required=True, metavar="FILE", help="the damaged database")
    parser.add_argument(
        "--out", metavar="FOLDER", help="where the new one is to stand; beside it by default"
    )
    return console.run(parser, _work, argv)


if __name__ == "__main__":
    sys.exit(main())
