"""The tables, as they are, and how a file of an earlier version becomes one of this version.

All SQL that shapes the file stands here. MIGRATIONS is append-only: a file of every version that
was ever released must open for ever (`tests/fixtures` keeps one of each). Knows nothing of APSW: it
hands out statements, `connection` runs them.

Three choices shape the rest:

* `docs.n` and not the id is what chunks refer to: an id is up to 256 codepoints, a row number two
  or three bytes. Content is the last column, so that reading a title does not walk its overflow
  pages.
* The search form of a text (contract, section 7.1) is kept beside it only where FTS5's own case
  folding would not give it: NULL in `form` and `title_form` means *the text itself*.
* What FTS5 indexes is the view `chunks_indexed`. Its texts end in two newlines, so that every
  codepoint heads a trigram and a term of one or two codepoints is a range of the index's terms;
  a newline cannot be part of a term. `words` holds the whole words of one or two codepoints, each
  between two U+001F, so that each is one trigram. `text` comes first, for FTS5 writes two bytes
  more for every row and term of any other column: 92 MB for 100,000 notes.
"""

from typing import Final

from hadano import limits

#: Stands in the file's header (PRAGMA application_id): "Hado" in ASCII.
APPLICATION_ID: Final = 0x4861646F

_V1: Final = """
CREATE TABLE docs(
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  title_form TEXT,
  tags TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  content TEXT NOT NULL
) STRICT;

CREATE TABLE chunks(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  doc INTEGER NOT NULL REFERENCES docs(n) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  text TEXT NOT NULL,
  form TEXT,
  words TEXT NOT NULL,
  UNIQUE(doc, seq)
) STRICT;

CREATE VIEW chunks_indexed(id, text, title, words) AS
SELECT c.id,
       coalesce(c.form, c.text) || char(10, 10),
       CASE c.seq WHEN 0 THEN coalesce(d.title_form, d.title) || char(10, 10) ELSE '' END,
       c.words
FROM chunks AS c JOIN docs AS d ON d.n = c.doc;

CREATE VIRTUAL TABLE chunks_fts USING fts5(
  text, title, words, content='chunks_indexed', content_rowid='id', tokenize='trigram'
);
INSERT INTO chunks_fts(chunks_fts, rank) VALUES('secure-delete', 1);

CREATE TABLE edges(
  doc_id TEXT NOT NULL REFERENCES docs(id) ON DELETE CASCADE,
  src TEXT NOT NULL,
  rel TEXT NOT NULL,
  dst TEXT NOT NULL,
  PRIMARY KEY(doc_id, src, rel, dst)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_src ON edges(src, rel, dst, doc_id);
CREATE INDEX edges_dst ON edges(dst, rel, src, doc_id);

CREATE TABLE audit_log(
  n INTEGER PRIMARY KEY,
  request_id TEXT NOT NULL,
  time TEXT NOT NULL,
  tool TEXT NOT NULL,
  doc_id TEXT,
  sha256 TEXT,
  args TEXT,
  row_count INTEGER NOT NULL,
  duration_ms REAL NOT NULL,
  outcome TEXT NOT NULL
) STRICT;
CREATE INDEX audit_log_doc_id ON audit_log(doc_id) WHERE doc_id IS NOT NULL;
CREATE INDEX audit_log_sha256 ON audit_log(sha256) WHERE sha256 IS NOT NULL;

CREATE TABLE chores(
  name TEXT PRIMARY KEY,
  asked INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

#: Rows of calls about no document, and of refused ones, can quote a text that is gone
#: (`audit.forget`); `forgetting` holds such texts while there was no time to look for them.
_V2: Final = """
DROP INDEX audit_log_sha256;
CREATE INDEX audit_log_saying ON audit_log(n)
WHERE args IS NOT NULL AND (doc_id IS NULL OR outcome <> 'ok');

CREATE TABLE forgetting(
  n INTEGER PRIMARY KEY,
  upto INTEGER NOT NULL,
  gone TEXT NOT NULL
) STRICT;
"""

#: Chunks of which something was taken out of the full-text index, the last of them: by these
#: a connection knows what of its decoded terms is still true (`_native/changes.pxi`).
_V3: Final = """
CREATE TABLE chunks_unindexed(
  n INTEGER PRIMARY KEY,
  chunk INTEGER NOT NULL
) STRICT;
"""

#: MIGRATIONS[v] takes a file from version v to v + 1; version 0 is an empty file.
MIGRATIONS: Final = (_V1, _V2, _V3)
#: PRAGMA user_version of a file that they have brought up to date.
VERSION: Final = len(MIGRATIONS)

#: A chore stands in its table from the moment that work is owed until it is done, through crashes,
#: with the number of times that it was asked for.
CHORE_ERASE_INDEX: Final = "erase-index"

#: The vectors of chunks that have none are owed.
CHORE_EMBED: Final = "embed"

#: Made when embeddings are first on: vectors of 256 signed bytes, compared by cosine distance, in
#: blocks of 256, which are what a write of one touches; the model that all of them are of, and how
#: often one was taken away to be made again, its chunk's title having changed.
VECTORS: Final = """
CREATE VIRTUAL TABLE vec_chunks USING vec0(
  chunk_id INTEGER PRIMARY KEY, embedding int8[256] distance_metric=cosine, chunk_size=256
);
CREATE TABLE vec_model(
  name TEXT NOT NULL, sha256 TEXT NOT NULL, remade INTEGER NOT NULL DEFAULT 0
) STRICT;
"""
NO_VECTORS: Final = "DROP TABLE IF EXISTS vec_chunks; DROP TABLE IF EXISTS vec_model;"

#: For one transaction of many documents: pages that wait in memory, and not in the log, to be
#: changed again; 64 MiB.
BULK_PRAGMAS: Final = "PRAGMA cache_size = -65536"

#: For a connection that searches: it keeps the pages that most searches read.
SEARCH_PRAGMAS: Final = f"PRAGMA cache_size = -{limits.PAGE_CACHE_BYTES_MAX // 1024}"

#: What the view `chunks_indexed` ends its texts with.
SENTINELS: Final = "\n\n"

#: Settings of every connection (contract, section 2), and ours: temporary tables stay out of
#: files, for nobody would erase those; the write-ahead log is copied back in the background and
#: not by whichever commit fills it, so that no search waits for a disk.
PRAGMAS: Final = f"""
PRAGMA journal_mode = WAL;
PRAGMA foreign_keys = ON;
PRAGMA secure_delete = ON;
PRAGMA temp_store = MEMORY;
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = {limits.WAL_IDLE_BYTES_MAX};
"""

#: BEGIN takes no snapshot, the first read after it does.
TAKE_SNAPSHOT: Final = "SELECT 1 FROM sqlite_schema"

ASK_FOR_CHORE: Final = (
    "INSERT INTO chores(name, asked) VALUES(?, 1) ON CONFLICT(name) DO UPDATE SET asked = asked + 1"
)

#: For a file of a schema that had no such list: an empty one, of this connection alone.
NOTHING_UNINDEXED: Final = (
    "CREATE TEMP TABLE IF NOT EXISTS chunks_unindexed(n INTEGER PRIMARY KEY, chunk INTEGER)"
)
#: The list of them keeps to its length; its numbers go on.
LIST_UNINDEXED: Final = "INSERT INTO chunks_unindexed(chunk) VALUES(?)"
SHORTEN_UNINDEXED: Final = (
    "DELETE FROM chunks_unindexed"
    f" WHERE n <= (SELECT max(n) FROM chunks_unindexed) - {limits.UNINDEXED_MAX}"
)

#: How large each segment of the full-text index is, counted in leaves on which a term begins.
LEAVES_BY_SEGMENT: Final = "SELECT count(*) FROM chunks_fts_idx GROUP BY segid"
