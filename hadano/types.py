"""What goes in and out: settings, the requests of the seven tools, and their answers.

The classes are the single source of the JSON schemas that clients see, so field descriptions are
written for an agent. Types and ranges are checked here by msgspec; what a type cannot say (blank
text, duplicates, sizes) is `validate.py`'s. Knows nothing of SQL or of the wire.
"""

import os
from collections.abc import Mapping
from typing import Annotated, Literal, Self, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from hadano import limits
from hadano.errors import Code, SettingsError

Value = TypeVar("Value", bound=str)

EmbeddingsMode = Literal["off", "local"]
RequestLog = Literal["full", "redacted", "off"]
ExpandMode = Literal["auto", "vector", "graph", "both"]
IntegrityState = Literal["checking", "ok", "failed"]


class Settings(Struct, frozen=True, kw_only=True):
    """The three environment variables, checked. There is no fourth."""

    path: str
    embeddings: EmbeddingsMode = "off"
    request_log: RequestLog = "full"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Reads HADANO_DB, HADANO_EMBEDDINGS and HADANO_REQUEST_LOG.

        The path comes back absolute, `~` expanded. Raises SettingsError, in one line, for a value
        outside the contract's sets and for a path that cannot name a file.
        """
        return cls(
            path=database_path(environment.get("HADANO_DB", "hadano.db")),
            embeddings=embeddings_mode(environment),
            request_log=_one_of(environment, "HADANO_REQUEST_LOG", ("full", "redacted", "off")),
        )


def database_path(given: str, source: str = "HADANO_DB") -> str:
    """The absolute path that `given` names; SettingsError where no file can stand there, with
    `source` saying where the path came from.

    Absolute, so that SQLite's own special names (`:memory:`, the empty name) are files like any
    other, and so that a later change of the working folder changes nothing.
    """
    if not given.strip():
        raise SettingsError(f"{source} is blank; it takes the path of the database file")
    path = os.path.abspath(os.path.expanduser(given))
    if os.path.isdir(path):
        raise SettingsError(f"{source} names a folder, not a file: {path}")
    if not os.path.isdir(os.path.dirname(path)):
        raise SettingsError(f"{source}: the folder {os.path.dirname(path)} does not exist")
    return path


def embeddings_mode(environment: Mapping[str, str] = os.environ) -> EmbeddingsMode:
    """What HADANO_EMBEDDINGS says; SettingsError where that is neither off nor local."""
    modes: tuple[EmbeddingsMode, ...] = ("off", "local")
    return _one_of(environment, "HADANO_EMBEDDINGS", modes)


def _one_of(environment: Mapping[str, str], name: str, allowed: tuple[Value, ...]) -> Value:
    given = environment.get(name, allowed[0])
    for value in allowed:
        if given == value:
            return value
    raise SettingsError(f"{name} is {given!r}; it takes {', '.join(allowed)}")


# Requests. `maxLength` and `maxItems` stand in the schemas for the agent's sake alone: msgspec must
# not act on them, for a size is E_TOO_LARGE and comes after everything else has been checked.


def _text(description: str, **schema: object) -> Meta:
    return Meta(description=description, extra_json_schema=schema)


def _filled(description: str, **schema: object) -> Meta:
    """Of text that must not be blank."""
    return _text(description, minLength=1, **schema)


DocumentId = Annotated[
    str,
    _filled(
        "Id of the document, which search_documents calls doc_id: any text without control "
        "characters, compared exactly.",
        maxLength=limits.ID_CODEPOINTS_MAX,
    ),
]
Tag = Annotated[str, _filled("A label.", maxLength=limits.TAG_CODEPOINTS_MAX)]
TopK = Annotated[
    int,
    Meta(
        ge=1,
        le=limits.TOP_K_MAX,
        description="How many results at most, best first; of each kind where there are two.",
    ),
]


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all requests share: nothing is ignored, nothing is changed after the check."""


class Relation(Request, frozen=True):
    """One edge of the relation graph, as its document states it."""

    src: Annotated[
        str,
        _filled("Node that the relation starts from.", maxLength=limits.NODE_CODEPOINTS_MAX),
    ]
    rel: Annotated[str, _filled("Name of the relation.", maxLength=limits.REL_CODEPOINTS_MAX)]
    dst: Annotated[
        str, _filled("Node that the relation leads to.", maxLength=limits.NODE_CODEPOINTS_MAX)
    ]


class StoreDocument(Request, frozen=True):
    title: Annotated[
        str,
        _filled("Title; it is searched with the text.", maxLength=limits.TITLE_CODEPOINTS_MAX),
    ]
    content: Annotated[
        str, _text(f"Text of the document, at most {limits.CONTENT_BYTES_MAX:,} bytes of UTF-8.")
    ]
    id: DocumentId | UnsetType = UNSET
    tags: (
        Annotated[
            list[Tag],
            _text(
                "Labels, each once: kept with the document, not searched.",
                maxItems=limits.TAGS_MAX,
                uniqueItems=True,
            ),
        ]
        | UnsetType
    ) = UNSET
    relations: (
        Annotated[
            list[Relation],
            _text(
                "Edges of the relation graph that this document states, each once.",
                maxItems=limits.RELATIONS_MAX,
                uniqueItems=True,
            ),
        ]
        | UnsetType
    ) = UNSET


class SearchDocuments(Request, frozen=True):
    query: Annotated[
        str,
        _filled(
            "Words to look for, as plain text; a document that has any of them can be found. "
            "Nothing in it is an operator.",
            maxLength=limits.QUERY_CODEPOINTS_MAX,
        ),
    ]
    top_k: TopK = limits.TOP_K_DEFAULT
    max_chunks_per_doc: Annotated[
        int,
        Meta(
            ge=1,
            le=limits.CHUNKS_PER_DOC_MAX,
            description="How many chunks of one document can match at most. 1 ranks documents by "
            "their best chunk, which suits a question that one passage answers; more favours "
            "documents that keep coming back to the words.",
        ),
    ] = limits.CHUNKS_PER_DOC_DEFAULT


class SearchKnowledge(Request, frozen=True):
    seed_chunk_ids: Annotated[
        list[int],
        Meta(
            min_length=1,
            max_length=limits.SEEDS_MAX,
            description="Chunks to expand from: chunk_id values that search_documents gave.",
            extra_json_schema={"uniqueItems": True},
        ),
    ]
    top_k: TopK = limits.TOP_K_DEFAULT
    mode: Annotated[
        ExpandMode,
        Meta(
            description="graph: edges of the seeds' documents and their neighbours; vector: "
            "chunks of like meaning; both; auto: whatever the database has.",
            extra_json_schema={"type": "string"},
        ),
    ] = "auto"


class QueryGraph(Request, frozen=True):
    node: Annotated[
        str,
        _filled(
            "Name of the node to start from, spelled as it was stored.",
            maxLength=limits.NODE_CODEPOINTS_MAX,
        ),
    ]
    depth: Annotated[
        int,
        Meta(ge=1, le=limits.HOPS_MAX, description="How many hops away edges may lie."),
    ] = 1
    rel: (
        Annotated[
            str,
            _filled(
                "Follow only relations of this name; all of them where it is left out.",
                maxLength=limits.REL_CODEPOINTS_MAX,
            ),
        ]
        | UnsetType
    ) = UNSET


class GetDocument(Request, frozen=True):
    id: DocumentId


class DeleteDocument(Request, frozen=True):
    id: DocumentId


class DbStatus(Request, frozen=True):
    pass


# Answers. Each carries request_id, which the hall fills in.

ChunkId = Annotated[int, Meta(description="Id of the chunk; a seed for search_knowledge.")]
Seq = Annotated[int, Meta(description="Place of the chunk in its document, from 0.")]


class Reply(Struct, kw_only=True):
    """What all answers share."""

    request_id: Annotated[str, Meta(description="32 hex digits, new each call.")] = ""


class Refusal(Struct, frozen=True):
    """What stands in an answer in place of all else but request_id when a call was refused."""

    code: Annotated[
        str, Meta(description="One of six codes.", extra_json_schema={"enum": sorted(Code)})
    ]
    message: Annotated[str, Meta(description="The field, and what is wrong with it.")]


class Stored(Reply):
    id: str
    chunks: Annotated[int, Meta(description="How many chunks the text was cut into.")]
    sha256: Annotated[str, Meta(description="SHA-256 of the content's UTF-8 bytes, in hex.")]


class MatchedChunk(Struct, frozen=True):
    chunk_id: ChunkId
    seq: Seq
    text: str


class FoundDocument(Struct, frozen=True):
    doc_id: str
    title: str
    score: Annotated[float, Meta(description="Sum of 1 / (60 + rank) over the matched chunks.")]
    matched_chunks: Annotated[list[MatchedChunk], Meta(description="Best first.")]


class Found(Reply):
    documents: Annotated[list[FoundDocument], Meta(description="Best first.")]
    truncated: Annotated[bool, Meta(description="Whether more documents matched than top_k.")]


class RelatedChunk(Struct, frozen=True):
    chunk_id: ChunkId
    doc_id: str
    title: str
    seq: Seq
    text: str
    score: Annotated[float, Meta(description="Cosine similarity to the nearest seed.")]
    source: Annotated[str, Meta(description="Always vector.")] = "vector"


class Edge(Struct, frozen=True):
    src: str
    rel: str
    dst: str
    doc_id: Annotated[str, Meta(description="Document that states the edge.")]


class RelatedEdge(Edge, frozen=True):
    source: Annotated[str, Meta(description="Always graph.")] = "graph"


class Related(Reply):
    related_chunks: Annotated[list[RelatedChunk], Meta(description="Most alike first.")]
    related_edges: Annotated[list[RelatedEdge], Meta(description="Nearest first.")]
    truncated: Annotated[bool, Meta(description="Whether more was reachable than top_k.")]


class Graph(Reply):
    nodes: Annotated[list[str], Meta(description="Names of the nodes reached, sorted.")]
    edges: Annotated[list[Edge], Meta(description="Nearest first.")]
    truncated: Annotated[
        bool,
        Meta(description=f"Whether the cap of {limits.GRAPH_EDGES_MAX} edges cut anything."),
    ]


class Document(Reply):
    id: str
    title: str
    content: str
    tags: list[str]
    sha256: str
    created_at: Annotated[str, Meta(description="ISO 8601, UTC, milliseconds.")]
    updated_at: Annotated[str, Meta(description="ISO 8601, UTC, milliseconds.")]


class Deleted(Reply):
    id: str
    deleted: bool
    erased: Annotated[
        bool,
        Meta(
            description="Whether not one byte of the text is left anywhere; false while another "
            "process or a large index still holds some, which is then erased as soon as possible."
        ),
    ]


class Status(Reply):
    db_path: str
    size_bytes: int
    docs: int
    chunks: int
    edges: int
    vectors: int
    embeddings_mode: Annotated[str, Meta(description="off or local.")]
    integrity_at_boot: Annotated[str, Meta(description="checking, ok or failed.")]
    sqlite_version: str
    vec_version: Annotated[
        str | None,
        Meta(description="Version of the vector extension; null while it is not loaded."),
    ]
