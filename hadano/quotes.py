"""A text that is gone, known again where somebody quoted it.

A quote is eight bytes or more of the text that no document holds any more. What a document still
holds says nothing about the one that is gone: whoever looked for `configuration` need not have
meant that. Refuses to know where quotes stand and what becomes of them (audit.py).
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

import msgspec
from msgspec import Struct

from hadano import limits
from hadano._native import Pieces, search_form
from hadano.connection import Connection
from hadano.types import Request

#: As many bytes of a text are a trace of it.
PIECE_BYTES: Final = 8
#: However a text is cut into chunks, one of them holds all of so long a piece of it.
_WITHIN_A_CHUNK_MAX: Final = limits.CHUNK_CODEPOINTS_MAX - limits.CHUNK_STRIDE_CODEPOINTS
#: Chunks that are looked at for a piece, of those that have its trigrams somewhere.
_CHUNKS_MAX: Final = 1_000
#: Codepoints of a term of the full-text index.
_TERM: Final = 3

_HOLDING: Final = f"""
SELECT 1 FROM (SELECT rowid FROM chunks_fts(?1) LIMIT {_CHUNKS_MAX}) AS f
JOIN chunks AS c ON c.id = f.rowid JOIN docs AS d ON d.n = c.doc
WHERE instr(lower(c.text), ?2) OR instr(lower(c.form), ?2)
   OR instr(lower(d.title), ?2) OR instr(lower(d.title_form), ?2)
LIMIT 1
"""
_NODE: Final = "SELECT 1 FROM edges WHERE src = ?1 UNION ALL SELECT 1 FROM edges WHERE dst = ?1"
_REL: Final = "SELECT 1 FROM edges WHERE rel = ?1"


class Gone(Struct, frozen=True, kw_only=True):
    """What a document held and no longer does."""

    id: str
    #: Title, content and tags, those that are gone.
    texts: list[str]
    #: Names in its relations, those that it no longer states.
    nodes: list[str]
    rels: list[str]

    @property
    def all(self) -> Iterator[str]:
        return chain(self.texts, self.nodes, self.rels)


class Quotes:
    """Knows quotes of what is gone. What it has once found to be held by a document it takes to be
    so for as long as it lives: whoever deletes that one looks for quotes again."""

    def __init__(self, db: Connection, gone: Iterable[Gone]) -> None:
        self._db = db
        gone = list(gone)
        self._pieces = Pieces(
            tuple({said for each in gone for text in each.all for said in _spellings(text)})
        )
        self._nodes = [(_lower(name), name) for each in gone for name in each.nodes]
        self._rels = [(_lower(name), name) for each in gone for name in each.rels]
        #: What stands in the log for another reason: an id is a name and no text.
        self._own = [_lower(each.id) for each in gone] + _PARAMETERS
        self._known: dict[bytes, bool] = {}

    def among(self, said: str) -> bool:
        """Whether there is a quote in JSON of something that was said."""
        lower = said.encode().lower()
        runs = {_whole(lower, start, end) for start, end in self._pieces.runs(lower)}
        return any(map(self._is_quote, runs))

    def _is_quote(self, run: bytes) -> bool:
        known = self._known.get(run)
        if known is None:
            known = self._known[run] = self._is_no_ones(run)
        return known

    def _is_no_ones(self, run: bytes) -> bool:
        text = _read(run)
        if text is None:
            return True
        if len(text.encode()) < PIECE_BYTES or any(text in name for name in self._own):
            return False
        return not (self._is_held(text) or self._is_named(text))

    def _is_held(self, text: str) -> bool:
        """Whether a document holds it in its content or its title. Longer pieces than can be looked
        up at once are taken for held by none."""
        return len(text) <= _WITHIN_A_CHUNK_MAX and (
            self._db.row(_HOLDING, (_terms(search_form(text)), text)) is not None
        )

    def _is_named(self, text: str) -> bool:
        """Whether a relation still has the name that it is part of."""
        return any(
            text in lower and self._db.value(f"{sql} LIMIT 1", (name,))
            for names, sql in ((self._nodes, _NODE), (self._rels, _REL))
            for lower, name in names
        )


_PARAMETERS: Final = [
    name for request in Request.__subclasses__() for name in request.__struct_fields__
]


def _lower(text: str) -> str:
    """As SQLite's `lower` has it: ASCII alone."""
    return text.encode().lower().decode()


def _spellings(text: str) -> Iterator[bytes]:
    """How JSON spells a text that is quoted as it is, case folded or in search form; ASCII
    lowered."""
    for form in {text, text.casefold(), search_form(text)}:
        yield msgspec.json.encode(form)[1:-1].lower()


def _terms(form: str) -> str:
    """FTS5's query for rows in which all of a text's codepoints stand in trigrams, wherever: half
    the time of a phrase, for which it would look up every trigram."""
    last = max(0, len(form) - _TERM)
    terms = [form[at : at + _TERM] for at in (*range(0, last, _TERM), last)]
    return " AND ".join('"' + term.replace('"', '""') + '"' for term in terms)


def _whole(data: bytes, start: int, end: int) -> bytes:
    """`data[start:end]`, and the rest of codepoints that begin or end outside of it."""
    while data[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return data[start:end]


def _read(run: bytes) -> str | None:
    """The text that a piece of JSON spells; None where it is cut so that it spells none. The quotes
    that open a string, and half of an escape at the end, are not the text's."""
    spelled = run.removeprefix(b'"')
    if (len(spelled) - len(spelled.rstrip(b"\\"))) % 2:
        spelled = spelled[:-1]
    try:
        text = msgspec.json.decode(b'"' + spelled + b'"', type=str)
    except msgspec.DecodeError:
        return None
    return None if "\0" in text else text
