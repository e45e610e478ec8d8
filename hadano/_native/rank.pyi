from array import array
from collections.abc import Iterable
from typing import Final, Protocol, Self, final

class _Connection(Protocol):
    def sqlite3_pointer(self) -> int: ...

LIBRARY: Final[str]
ENTRY_POINT: Final[str]
STATEMENT_TEXTS: Final[tuple[str, ...]]
SUBSTRING: Final[int]
WORD: Final[int]
ANYWHERE: Final[int]

class DamagedIndex(Exception): ...
class Cancelled(Exception): ...
class StoreFailed(Exception): ...

@final
class Ranker:
    def __new__(
        cls,
        connection: _Connection,
        index: str = "chunks_fts",
        chunks: str = "chunks",
        cache_bytes: int = 33554432,
    ) -> Self: ...
    @property
    def cached_bytes(self) -> int: ...
    def rank(
        self, terms: Iterable[tuple[int, str]], per_doc: int, ranks: int
    ) -> tuple[array[int], array[int]]: ...
    def cancel(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...
