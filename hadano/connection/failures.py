"""What SQLite says when it fails, in the contract's codes and in words for a client."""

from typing import Final

import apsw

from hadano.errors import Code, HadanoError

#: What a statement can raise. Only UTF-8 is ever stored, but SQLite itself does not look.
REFUSALS: Final = (apsw.Error, UnicodeDecodeError)

#: SQLite's failures in the contract's codes. The first class that fits speaks.
_FAILURES: Final = (
    (apsw.InterruptError, Code.TIMEOUT, "the call was cut short and undone"),
    (apsw.BusyError, Code.TIMEOUT, "another process held the database for too long"),
    (apsw.LockedError, Code.TIMEOUT, "another process held the database for too long"),
    (apsw.NotADBError, Code.INTEGRITY, "the file is not a database"),
    (UnicodeDecodeError, Code.INTEGRITY, "the database is damaged"),
    (apsw.CorruptError, Code.INTEGRITY, "the database is damaged"),
    (apsw.FullError, Code.INTERNAL, "the disk is full"),
    (apsw.ReadOnlyError, Code.INTERNAL, "the database file cannot be written"),
    (apsw.CantOpenError, Code.INTERNAL, "the database file cannot be opened"),
    (apsw.PermissionsError, Code.INTERNAL, "the database file cannot be opened"),
    (apsw.IOError, Code.INTERNAL, "the disk cannot be read or written"),
    (apsw.NoMemError, Code.INTERNAL, "out of memory"),
)


def translated(error: Exception) -> HadanoError:
    """The HadanoError that says to a client what `error` means; SQLite's own words stay here."""
    for kind, code, message in _FAILURES:
        if isinstance(error, kind):
            return HadanoError(code, message)
    return HadanoError(Code.INTERNAL, "the database refused a statement")


def failure(code: int) -> apsw.Error:
    """APSW's own exception for one of SQLite's result codes."""
    failure = apsw.exception_for(code)
    return failure if isinstance(failure, apsw.Error) else apsw.Error(str(failure))
