"""The store room, the one place that knows APSW: a database file, and SQLite's errors in our words.

What comes out of here is plain tuples and `HadanoError`. No rule of the contract's tools stands
here, and no SQL that a room could hold. Other floors know this door alone.
"""

from hadano.connection.file import Connection
from hadano.connection.statements import Row, listed, sqlite_version

__all__ = ["Connection", "Row", "listed", "sqlite_version"]
