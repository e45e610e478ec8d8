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


def warm(db: Connection) -> Iterator[None]:
    """Decodes the commonest words, one a step, each in a snapshot of its own; none of a store so
    small that every first search is fast."""
    newest: int = db.value(_NEWEST) or 0
    if newest < limits.WARM_CHUNKS_MIN:
        return
    # The commonest last, for what was asked for last is dropped last.
    for term in reversed(_affordable((yield from _sampled(db, newest)), newest)):
        db.decode(term)
        yield


def _sampled(db: Connection, newest: int) -> Generator[None, None, Counter[Term]]:
    """In how many chunks of a sample each term is, as a query would be cut."""
    seen: Counter[Term] = Counter()
    for n in range(limits.WARM_SAMPLE_CHUNKS):
        text = db.value(_TEXT, (1 + n * newest // limits.WARM_SAMPLE_CHUNKS,))
        seen.update(terms_of_any_query(text or ""))
        yield
    return seen


def _affordable(seen: Counter[Term], newest: int) -> list[Term]:
    """The commonest terms, as many as there is room for, by how many chunks of the sample have
    them: two bytes each, and four for 1,024 chunks whether they have it or not."""
    taken = []
    room = limits.WARM_BYTES_MAX
    for term, chunks in seen.most_common():
        room -= 2 * chunks * newest // limits.WARM_SAMPLE_CHUNKS + newest // 256
        if room < 0 or chunks < limits.WARM_SEEN_MIN:
            break
        taken.append(term)
    return taken
