"""A text that is gone, known again where somebody quoted it.

A quote is eight bytes or more of the text that no document holds any more. What a document still
holds says nothing about the one that is gone: whoever looked for `configuration` need not have
meant that. Refuses to know where quotes stand and what becomes of them (audit.py).
"""

import math
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

import msgspec
from msgspec import Struct

from hadano import limits
from hadano._native import Pieces, beyond_ascii, lowered_lines, other_lines, search_form
from hadano.connection import Connection
from hadano.types import Request

#: As many bytes of a text are a trace of it.
PIECE_BYTES: Final = 8
#: However a text is cut into chunks, one of them holds all of so long a part of it: as many bytes
#: are no more codepoints.
_WITHIN_A_CHUNK_MAX: Final = limits.CHUNK_CODEPOINTS_MAX - limits.CHUNK_STRIDE_CODEPOINTS
#: Chunks that are looked at for a part of the text, of those that have some trigrams of it.
_CHUNKS_MAX: Final = 1_000
#: So many trigrams, evenly spread: a phrase has FTS5 look up each, which takes twice the time.
_TRIGRAMS_MAX: Final = 4

_HOLDING: Final = f"""
SELECT c.text, d.title FROM (SELECT rowid FROM chunks_fts(?1) LIMIT {_CHUNKS_MAX}) AS f
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


class OutOfTime(Exception):
    """The time for looking is over."""


class Quotes:
    """Knows quotes of what is gone, in whatever case, width or normal form they were said.

    What a document is found to hold is dropped from what is looked for, with all else that it is
    found to hold, for as long as this lives: whoever deletes that document looks for quotes again.

    Raises OutOfTime, from anywhere, once `until` is over, on the clock of `time.monotonic`.
    """

    def __init__(self, db: Connection, gone: Iterable[Gone], *, until: float = math.inf) -> None:
        self._db = db
        self._until = until
        self._look_at_the_clock()
        self._gone = list(gone)
        texts = [text for each in self._gone for text in each.all]
        self._pieces = Pieces(tuple({said for text in texts for said in _spellings(text)}))
        # These stand in the log for another reason: an id is a name and no text.
        self._drop(*_PARAMETERS, *(each.id for each in self._gone))
        self._no_ones: set[bytes] = set()

    def among(self, said: str) -> bool:
        """Whether there is a quote in JSON of something that was said."""
        self._look_at_the_clock()
        return any(self._is_quoted(form.encode().lower()) for form in _forms(said))

    def may_be_among(self, said: bytes) -> bool:
        """Whether there may be a quote among lines of which `heard` gave this; where not, there is
        none in any of them."""
        self._look_at_the_clock()
        return any(not self._is_held(run) for run in self._runs(said))

    def _look_at_the_clock(self) -> None:
        if time.monotonic() > self._until:
            raise OutOfTime

    def _is_quoted(self, said: bytes) -> bool:
        return any(self._is_no_ones(run) for run in self._runs(said))

    def _runs(self, said: bytes) -> Iterator[bytes]:
        """What of it may be quotes, one after another. Of what is found to be none the pieces have
        to be dropped before the next is asked for."""
        start = 0
        while run := self._pieces.run(said, start, _WITHIN_A_CHUNK_MAX):
            self._look_at_the_clock()
            start, end = run
            yield _whole(said, start, end)

    def _is_no_ones(self, run: bytes) -> bool:
        """Whether no document holds it; the pieces of what is no quote are dropped."""
        if run in self._no_ones:
            return True
        if self._is_held(run):
            return False
        text = _read(run)
        if text is None or len(text.encode()) >= PIECE_BYTES:
            self._no_ones.add(run)
            return True
        # The quote that opens a string is no text, nor is half a character that others begin with.
        self._pieces.drop(run)
        return False

    def _is_held(self, run: bytes) -> bool:
        """Whether a document is found to hold it; what that one holds is dropped."""
        text = _read(run)
        if run in self._no_ones or text is None or len(text.encode()) < PIECE_BYTES:
            return False
        query = _trigrams(search_form(text))
        held = self._db.row(_HOLDING, (query, text)) or self._names(text)
        if held:
            self._drop(*held)
            self._pieces.drop(run)
        return bool(held)

    def _names(self, text: str) -> list[str]:
        """A name in a relation, of which the text is a part; none where no relation has it."""
        for each in self._gone:
            for names, sql in ((each.nodes, _NODE), (each.rels, _REL)):
                for name in names:
                    if text in _lower(name) and self._db.row(f"{sql} LIMIT 1", (name,)):
                        return [name]
        return []

    def _drop(self, *texts: str) -> None:
        for text in texts:
            for said in _spellings(text):
                self._pieces.drop(said)


_PARAMETERS: Final = [
    name for request in Request.__subclasses__() for name in request.__struct_fields__
]


def heard(lines: bytes) -> bytes:
    """What `Quotes.among` compares of many lines of JSON, for `may_be_among`: every eight bytes of
    it that a text can have. ValueError for what is no UTF-8.

    Most lines are ASCII. Only what is not is folded: that takes ten times as long as to look at it.
    """
    beyond = beyond_ascii(lines)
    text = beyond.decode()
    folded, form = (form.encode().lower() for form in (text.casefold(), search_form(text)))
    return b"".join(
        (
            lowered_lines(lines, _BEFORE_A_QUERY),
            other_lines(folded, beyond.lower()),
            other_lines(form, folded),
        )
    )


#: How nearly every row begins. JSON escapes the quotes in a text, so none has pieces of these.
_BEFORE_A_QUERY: Final = b'{"query":'


def _lower(text: str) -> str:
    """As SQLite's `lower` has it: ASCII alone."""
    return text.encode().lower().decode()


def _forms(text: str) -> Iterable[str]:
    """A text as it is, case folded and in search form, each once but for ASCII's case: who says it
    in another case, width or normal form says the same in one of them."""
    if text.isascii():
        return (text,)
    return dict.fromkeys((text, text.casefold(), search_form(text)))


def _spellings(text: str) -> Iterator[bytes]:
    """How JSON spells each form of a text; ASCII lowered."""
    for form in _forms(text):
        yield msgspec.json.encode(form)[1:-1].lower()


def _trigrams(form: str) -> str:
    """FTS5's query for rows that have some trigrams of a text in search form, its ends among
    them."""
    last = max(0, len(form) - 3)
    parts = _TRIGRAMS_MAX - 1
    at = sorted({last * part // parts for part in range(parts + 1)})
    return " AND ".join('"' + form[start : start + 3].replace('"', '""') + '"' for start in at)


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
