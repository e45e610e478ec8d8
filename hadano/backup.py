"""`python -m hadano.backup`: a snapshot of the database, taken while servers write to it.

The copy is SQLite's own, page by page, of one snapshot held from the first step to the last, so
writers never wait and never make it start over. VACUUM INTO would do as well, but says nothing on
its way, works twice as long, and its copy is another file than the one that was to be saved.
Refuses to know what stands in the tables.
"""

import argparse
import os
import sys
from contextlib import closing
from typing import Final

from hadano import console, files, status
from hadano.connection import Connection
from hadano.errors import Code, HadanoError

#: Pages of one step, 4 MiB: often enough for a bar, and for an interrupt to be heard.
PAGES_PER_STEP: Final = 1_024


def backup(source: str, folder: str) -> str:
    """Copies the database at `source` into `folder`, as it is now, and gives the copy's path,
    `name-YYYYMMDDTHHMMSSZ.db` in UTC, with a number where that name is taken.

    The copy is checked before it gets its name: it stands whole and sound, or not at all. Raises
    HadanoError: E_VALIDATION where the source is missing or no database of ours, E_INTEGRITY
    where it is damaged, E_INTERNAL where the disk is full; OSError where files cannot be made.
    """
    name = os.path.splitext(os.path.basename(source))[0]
    stamped = files.stamped(name)
    with files.draft(folder, name) as path:
        _copy(source, path)
        _check(path)
        return files.publish_numbered(path, folder, stamped)


def _copy(source: str, path: str) -> None:
    with (
        closing(Connection(source, reading=True)) as db,
        console.Progress("copying", 0, "pages") as progress,
    ):
        for done, total in db.copy(path, PAGES_PER_STEP):
            progress.reach(done, total)


def _check(path: str) -> None:
    with closing(Connection(path, reading=True)) as db:
        if not db.structure_holds():
            raise HadanoError(Code.INTEGRITY, "the database is damaged: a table is not well formed")
        if not status.index_agrees(db):
            raise HadanoError(
                Code.INTEGRITY, "the database is damaged: its full-text index and its text disagree"
            )


def _work(arguments: argparse.Namespace) -> None:
    source = console.database("--db", arguments.db)
    print(backup(source, console.folder("--out", arguments.out)))


def main(argv: list[str] | None = None) -> int:
    """The command; gives its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m hadano.backup",
        description="Copies a Hadano database while servers may be writing to it. The copy is "
        "checked before it gets its name, and its path is printed.",
        epilog="To go back to a copy: stop every server, delete the database and the files named "
        "like it with -wal and -shm at the end, and put the copy in its place.",
    )
    parser.add_argument("--db", required=True, metavar="FILE", help="the database to copy")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the copy is to stand")
    return console.run(parser, _work, argv)


if __name__ == "__main__":
    sys.exit(main())
