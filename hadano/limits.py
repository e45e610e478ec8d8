"""Every number of the contract, each under one name and in one home.

Kept apart from the code that enforces them, so that the manual, the JSON schemas, the tests and
the checks cannot drift from one another. Nothing here knows what a document is.
"""

from typing import Final

# Chunking (contract, section 2), in Unicode codepoints.
CHUNK_CODEPOINTS_MAX: Final = 800
CHUNK_STRIDE_CODEPOINTS: Final = 700

# Sizes (contract, section 6): past them a call is E_TOO_LARGE.
CONTENT_BYTES_MAX: Final = 1_048_576
TITLE_CODEPOINTS_MAX: Final = 512
QUERY_CODEPOINTS_MAX: Final = 1_024
TAGS_MAX: Final = 20
TAG_CODEPOINTS_MAX: Final = 64
RELATIONS_MAX: Final = 100
NODE_CODEPOINTS_MAX: Final = 128
REL_CODEPOINTS_MAX: Final = 64

# Ranges (contract, sections 4, 5 and 6): outside them a call is E_VALIDATION.
ID_CODEPOINTS_MAX: Final = 256
TOP_K_DEFAULT: Final = 10
TOP_K_MAX: Final = 100
CHUNKS_PER_DOC_DEFAULT: Final = 3
CHUNKS_PER_DOC_MAX: Final = 20
SEEDS_MAX: Final = 3
HOPS_MAX: Final = 3
GRAPH_EDGES_MAX: Final = 500

# Stage 1 (contract, section 7.5): reciprocal rank fusion, score 1 / (constant + rank).
# The constant is the one of Cormack, Clarke and Buettcher, SIGIR 2009.
FUSION_RANKS_MAX: Final = 1_000
FUSION_CONSTANT: Final = 60
SCORE_DECIMALS: Final = 4

# Time (contract, sections 2 and 4), in milliseconds.
CALL_MS_MAX: Final = 2_000
BUSY_MS_MAX: Final = 5_000

# Ours, not the contract's.
#: Documents of up to so many distinct trigrams, and those whose trigrams lie on up to so many pages
#: of the full-text index, are overwritten in it within the call, and so is every document of up to
#: 32 KiB: each page that is written takes some 15 µs and 4 KiB of log. Others leave delete markers
#: that background merging then removes.
ERASE_AT_ONCE_LEAVES_MAX: Final = 40_000
#: Of a call's time, what that may take before it is undone and left to the background.
ERASE_AT_ONCE_MS_MAX: Final = 1_000
#: Pages of the index that one transaction in the background rewrites: some 5 ms.
MERGE_PAGES: Final = 64
#: The index is merged into one segment in the background where it has so many, of so many leaves of
#: 4 KiB together, and all but the largest are at least such a part of it.
MERGE_SEGMENTS_MIN: Final = 4
MERGE_LEAVES_MIN: Final = 1_000
MERGE_SHARE: Final = 8
#: The index's new segments of a document from this size on are left to be merged later.
MERGE_LATER_CODEPOINTS_MIN: Final = 262_144
#: No document within limits makes a longer line of JSON, on the wire, in a dump or in the audit
#: log. JSON can spell one byte of UTF-8 with six (`\u0001`), and one codepoint with twelve (a pair
#: of surrogates); another content's length is room for keys, white space and a protocol's envelope.
JSON_LINE_BYTES_MAX: Final = (
    6 * CONTENT_BYTES_MAX
    + 12 * TITLE_CODEPOINTS_MAX
    + 12 * ID_CODEPOINTS_MAX
    + 12 * TAGS_MAX * TAG_CODEPOINTS_MAX
    + 12 * RELATIONS_MAX * (2 * NODE_CODEPOINTS_MAX + REL_CODEPOINTS_MAX)
    + CONTENT_BYTES_MAX
)
#: Audit rows that wait in memory for another process's write lock.
AUDIT_WAITING_MAX: Final = 10_000
#: Bytes of the audit log that a server which erases keeps in memory, folded: a million searches of
#: three words.
SAID_BYTES_MAX: Final = 32 * 1_048_576
#: Chunks taken out of the full-text index that the file remembers, for who has terms decoded.
UNINDEXED_MAX: Final = 1_000
#: What a connection keeps of decoded doclists between searches, by the store's chunks and within
#: these bounds: each word takes as much more as the store is larger.
DECODED_BYTES_A_CHUNK: Final = 220
DECODED_BYTES_MIN: Final = 80 * 1_048_576
DECODED_BYTES_MAX: Final = 320 * 1_048_576
#: A store of fewer chunks is not warmed: no first search in it takes a millisecond.
WARM_CHUNKS_MIN: Final = 10_000
#: Chunks that are read to find the words most texts have, and in how many of them a word must be;
#: bytes of decoded doclists that are handed over together.
WARM_SAMPLE_CHUNKS: Final = 3_000
WARM_SEEN_MIN: Final = 2
WARM_PART_BYTES: Final = 16 * 1_048_576
#: Chunks whose vectors one transaction in the background writes: some 5 ms.
EMBED_CHUNKS: Final = 256
#: Blocks of 256 vectors that a connection keeps in memory, of 74 KiB each: 64 MiB, or 226,000
#: vectors. The others of a larger store are read from the file at every search.
VECTOR_BLOCKS_MAX: Final = 884
#: Pages of the file that a connection keeps in memory once it has searched.
PAGE_CACHE_BYTES_MAX: Final = 16 * 1_048_576
#: Pages in the write-ahead log past which it is copied back into the file, in the background.
WAL_PAGES_MAX: Final = 1_000
#: Bytes that the write-ahead log keeps on disk once it has been copied back.
WAL_IDLE_BYTES_MAX: Final = 4 * 1_048_576

if not 0 < CHUNK_STRIDE_CODEPOINTS <= CHUNK_CODEPOINTS_MAX:
    raise AssertionError("a stride of zero never ends; one longer than the window loses text")
if not TOP_K_DEFAULT <= TOP_K_MAX <= FUSION_RANKS_MAX:
    raise AssertionError("a search cannot answer with more documents than it ranks chunks")
if not CHUNKS_PER_DOC_DEFAULT <= CHUNKS_PER_DOC_MAX <= FUSION_RANKS_MAX:
    raise AssertionError("a document cannot show more chunks than are ranked")
