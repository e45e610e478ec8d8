"""From what a client sent to a request that can be trusted, or the right refusal.

The order is the contract's (section 4): shape, types and ranges first, then what a type cannot say,
then sizes. Whether a document exists is asked later, by the rooms, for it takes the database.
"""

import functools
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, get_args

import msgspec
from msgspec import UNSET, UnsetType

from hadano import limits
from hadano.errors import Code, HadanoError, invalid, too_large
from hadano.plan import has_terms
from hadano.types import (
    DeleteDocument,
    ExpandMode,
    GetDocument,
    QueryGraph,
    Relation,
    Request,
    SearchDocuments,
    SearchKnowledge,
    StoreDocument,
)

R = TypeVar("R", bound=Request)

#: A request's fields; msgspec works them out anew each time, at a tenth of what a search costs.
_fields = functools.cache(msgspec.structs.fields)


def request(kind: type[R], arguments: object) -> R:
    """The request of class `kind` that `arguments` state.

    An integral float is an integer, null for an optional parameter means absent. Raises
    HadanoError: E_VALIDATION for anything of the wrong form, then E_TOO_LARGE past a limit.
    """
    checked = _typed(kind, arguments)
    _MEANING.get(kind, _nothing)(checked)
    _SIZES.get(kind, _nothing)(checked)
    return checked


def document(it: StoreDocument) -> None:
    """Checks a document whose types are right as `request` does; raises what that raises."""
    _store(it)
    _store_sizes(it)


def refusal(error: msgspec.DecodeError) -> HadanoError:
    """E_VALIDATION for JSON that is none, or whose fields are of the wrong type."""
    if isinstance(error, msgspec.ValidationError):
        return _refusal(str(error))
    return HadanoError(Code.VALIDATION, "is no JSON, or is cut off")


def _nothing(_: Any) -> None:
    pass


def _typed(kind: type[R], arguments: object) -> R:
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise HadanoError(Code.VALIDATION, "arguments: expected an object of named parameters")
    fields = _fields(kind)
    names = [field.name for field in fields]
    for name in arguments:
        if name not in names:
            takes = f"it takes {', '.join(names)}" if names else "it takes none"
            raise invalid(str(name)[:80], f"this tool has no such parameter; {takes}")
    required = {field.name for field in fields if field.required}
    given = {
        name: _whole_numbers(value)
        for name, value in arguments.items()
        if value is not None or name in required
    }
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from None
    except UnicodeEncodeError:
        # Where a text is one of several names, msgspec encodes it to compare it.
        raise invalid(_broken(given), "holds a lone surrogate") from None


def _broken(given: Mapping[str, Any]) -> str:
    """The first parameter with half of a surrogate pair in it, however deep."""
    for name, value in given.items():
        try:
            msgspec.json.encode(value)
        except UnicodeEncodeError:
            return name
    return "arguments"


def _whole_numbers(value: Any) -> Any:
    """JSON has one kind of number: 10.0 is as good an integer as 10 (JSON Schema says so too)."""
    if isinstance(value, list):
        return [_whole_number(item) for item in value]
    return _whole_number(value)


def _whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WORDS: Final = {
    "`str`": "text",
    "`int`": "an integer",
    "`bool`": "a boolean",
    "`float`": "a number that is no integer",
    "`array`": "a list",
    "`object`": "an object",
}


def _refusal(message: str) -> HadanoError:
    """msgspec's `What is wrong - at `$.field`` in the contract's form, the field first."""
    what, _, where = message.partition(" - at `$")
    for theirs, ours in _WORDS.items():
        what = what.replace(theirs, ours)
    field = where.rstrip("`").removeprefix(".")
    if what.startswith("Object missing required field "):
        name = what.rpartition(" ")[2].strip("`")
        return invalid(f"{field}.{name}" if field else name, "required, and missing")
    # Of the requests' fields only `mode` is one of a set, and only a relation is an object.
    if what.startswith("Invalid enum value "):
        what += f"; it takes {', '.join(get_args(ExpandMode))}"
    if what.startswith("Object contains unknown field "):
        what += f"; it takes {', '.join(Relation.__struct_fields__)}"
    return invalid(field or "arguments", what[:1].lower() + what[1:])


# What a type cannot say.


def _plain(field: str, text: str) -> None:
    """Text that SQLite and JSON agree about: no NUL, no half of a surrogate pair."""
    if "\0" in text:
        raise invalid(field, "holds a NUL character")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise invalid(field, f"holds a lone surrogate at codepoint {error.start}") from None


def _filled(field: str, text: str) -> None:
    _plain(field, text)
    if not text.strip():
        raise invalid(field, "is blank")


def _document_id(id: str) -> None:
    _filled("id", id)
    if len(id) > limits.ID_CODEPOINTS_MAX:
        raise invalid("id", f"{len(id):,} codepoints, at most {limits.ID_CODEPOINTS_MAX} make one")
    if any(unicodedata.category(character) == "Cc" for character in id):
        raise invalid("id", "holds a control character")


def _distinct(field: str, items: Sequence[Any]) -> None:
    if len(set(items)) != len(items):
        raise invalid(field, "holds the same item twice")


def _store(it: StoreDocument) -> None:
    _filled("title", it.title)
    _plain("content", it.content)
    if it.id is not UNSET:
        _document_id(it.id)
    for place, tag in enumerate(_given(it.tags)):
        _filled(f"tags[{place}]", tag)
    for place, relation in enumerate(_given(it.relations)):
        for name, text in _names(relation):
            _filled(f"relations[{place}].{name}", text)
    _distinct("tags", _given(it.tags))
    _distinct("relations", [(r.src, r.rel, r.dst) for r in _given(it.relations)])


def _search(it: SearchDocuments) -> None:
    _filled("query", it.query)
    if not has_terms(it.query):
        raise invalid("query", "holds no word to look for, only punctuation")


def _expand(it: SearchKnowledge) -> None:
    _distinct("seed_chunk_ids", it.seed_chunk_ids)


def _graph(it: QueryGraph) -> None:
    _filled("node", it.node)
    if it.rel is not UNSET:
        _filled("rel", it.rel)


def _by_id(it: GetDocument | DeleteDocument) -> None:
    _document_id(it.id)


def _given(items: list[Any] | UnsetType) -> list[Any]:
    return [] if isinstance(items, UnsetType) else items


def _names(relation: Relation) -> Iterable[tuple[str, str]]:
    return (("src", relation.src), ("rel", relation.rel), ("dst", relation.dst))


# Sizes.


def _at_most(field: str, size: int, most: int, unit: str = "codepoints") -> None:
    if size > most:
        raise too_large(field, size, most, unit)


def _store_sizes(it: StoreDocument) -> None:
    _at_most("title", len(it.title), limits.TITLE_CODEPOINTS_MAX)
    _at_most("content", utf8_bytes(it.content), limits.CONTENT_BYTES_MAX, "bytes")
    _at_most("tags", len(_given(it.tags)), limits.TAGS_MAX, "items")
    for place, tag in enumerate(_given(it.tags)):
        _at_most(f"tags[{place}]", len(tag), limits.TAG_CODEPOINTS_MAX)
    _at_most("relations", len(_given(it.relations)), limits.RELATIONS_MAX, "items")
    for place, relation in enumerate(_given(it.relations)):
        for name, text in _names(relation):
            most = limits.REL_CODEPOINTS_MAX if name == "rel" else limits.NODE_CODEPOINTS_MAX
            _at_most(f"relations[{place}].{name}", len(text), most)


def _search_sizes(it: SearchDocuments) -> None:
    _at_most("query", len(it.query), limits.QUERY_CODEPOINTS_MAX)


def _graph_sizes(it: QueryGraph) -> None:
    _at_most("node", len(it.node), limits.NODE_CODEPOINTS_MAX)
    if it.rel is not UNSET:
        _at_most("rel", len(it.rel), limits.REL_CODEPOINTS_MAX)


def utf8_bytes(text: str) -> int:
    """How many bytes `text` takes in UTF-8; ASCII is not encoded to be counted."""
    return len(text) if text.isascii() else len(text.encode())


_MEANING: Final[Mapping[type[Request], Callable[[Any], None]]] = {
    StoreDocument: _store,
    SearchDocuments: _search,
    SearchKnowledge: _expand,
    QueryGraph: _graph,
    GetDocument: _by_id,
    DeleteDocument: _by_id,
}
_SIZES: Final[Mapping[type[Request], Callable[[Any], None]]] = {
    StoreDocument: _store_sizes,
    SearchDocuments: _search_sizes,
    QueryGraph: _graph_sizes,
}
