"""What must be true of a file after anything that happened to it."""

from contextlib import closing
from pathlib import Path
from typing import Any

from hadano import status
from hadano.connection import Connection
from tests.tools.store import Store, until

#: A document as its users see it: title, content, tags, relations.
State = dict[str, tuple[Any, ...]]


def state_of(path: Path) -> State:
    """What the file holds, once it has been found sound: every tree, every document whole (its
    content is that of its hash and of its chunks), the full-text index agreeing with the text by
    our own check and by FTS5's."""
    with closing(Connection(str(path))) as db:
        assert db.structure_holds()
        assert status.index_agrees(db)
        assert db.rows("PRAGMA integrity_check") == [("ok",)]
        assert db.rows("PRAGMA foreign_key_check") == []
        db.run("INSERT INTO chunks_fts(chunks_fts, rank) VALUES('integrity-check', 1)")
        assert db.rows(_CUT_ELSEWHERE) == []
        relations = "SELECT src, rel, dst FROM edges WHERE doc_id = ? ORDER BY 1, 2, 3"
        return {
            id: (title, content, tags, *db.rows(relations, (id,)))
            for id, title, content, tags in db.rows("SELECT id, title, content, tags FROM docs")
        }


#: Documents whose chunks are not their text: chunk `seq` begins at codepoint 700 * seq.
_CUT_ELSEWHERE = """
SELECT d.id FROM docs AS d JOIN chunks AS c ON c.doc = d.n
GROUP BY d.n
HAVING sum(c.text <> substr(d.content, 1 + 700 * c.seq, 800)) > 0
    OR count(*) <> max(1, 1 + (max(length(d.content) - 800, 0) + 699) / 700)
"""


def quiet(store: Store) -> None:
    """Waits until a store's own start is over: checked, and the log copied back."""
    assert store.integrity() == "ok"
    housekeeper = store.service._housekeeper
    until(lambda: not housekeeper.owes_log())
    with housekeeper.copying:
        return
