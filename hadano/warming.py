"""The words that a store's texts have most often, decoded before anybody asks for them.

Decoding is most of what a word costs the first time, and costs most for the words that most texts
have. They are found as queries would be cut, in a sample of the chunks. Refuses to know who hands
them over to whom, and what is asked meanwhile.
"""

from collections import Counter
from collections.abc import Generator, Iterator
from typing import Final

from hadano import limits
from hadano.connection import Connection
from hadano.plan import Term, terms_of_any_query

_NEWEST: Final = "SELECT max(id) FROM chunks"
#: Ids are sparse where much was deleted: the first chunk from there on.
_TEXT: Final = "SELECT coalesce(form, text) FROM chunks WHERE id >= ? ORDER BY id LIMIT 1"


def warm(db: Connection) -> Iterator[bool]:
    """Decodes the commonest words, the most common first, one a step, each in a snapshot of its
    own; as many as are kept, and none of a store so small that every first search is fast. True
    where so many are decoded that they should be put to use before the rest."""
    newest: int = db.value(_NEWEST) or 0
    if newest < limits.WARM_CHUNKS_MIN:
        return
    seen = yield from _sampled(db, newest)
    for term, chunks in seen.most_common():
        if chunks < limits.WARM_SEEN_MIN or not db.decode(term):
            return
        yield db.decoded_bytes >= limits.WARM_PART_BYTES


def _sampled(db: Connection, newest: int) -> Generator[bool, None, Counter[Term]]:
    """In how many chunks of a sample each term is, as a query would be cut."""
    seen: Counter[Term] = Counter()
    for n in range(limits.WARM_SAMPLE_CHUNKS):
        text = db.value(_TEXT, (1 + n * newest // limits.WARM_SAMPLE_CHUNKS,))
        seen.update(terms_of_any_query(text or ""))
        yield False
    return seen
