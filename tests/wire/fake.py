"""A hall of a few tools that do nothing but show the wire, and a process that serves it.

Their table is what the SDK's server in oracle.py serves too. Knows nothing of the store.
"""

import os
import sys
import threading

import msgspec

from hadano import server
from hadano.service import Answer, UnknownTool

_ANY = {"type": "object"}
_SAFE = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}


class Tool(msgspec.Struct):
    """The columns of the tool table that a client sees."""

    name: str
    title: str
    description: str
    input_schema: dict
    output_schema: dict
    annotations: dict


TOOLS = (
    Tool(
        name="echo",
        title="Echo",
        description="Says what it was told.",
        input_schema={
            "type": "object",
            "properties": {"text": {"type": "string", "default": "", "maxLength": 9}},
            "additionalProperties": False,
        },
        output_schema={"type": "object", "properties": {"said": {}}, "required": ["said"]},
        annotations=_SAFE,
    ),
    Tool("fail", "Fail", "Answers with an error.", _ANY, _ANY, _SAFE),
    Tool("wait", "Wait", "Waits until it is cancelled.", _ANY, _ANY, _SAFE),
    Tool("noise", "Noise", "Prints wherever a library could.", _ANY, _ANY, _SAFE),
    Tool("flood", "Flood", "Says more on the side than a pipe holds.", _ANY, _ANY, _SAFE),
    Tool("errors", "Errors", "Says whether descriptor 2 is the null device.", _ANY, _ANY, _SAFE),
    Tool("crash", "Crash", "Has a bug.", _ANY, _ANY, _SAFE),
    Tool("size", "Size", "Counts the codepoints of a text.", _ANY, _ANY, _SAFE),
)


class Service:
    """What the wire sees of the hall. `wait` says on standard error that it has begun."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()

    def call(self, tool: str, arguments: object) -> Answer:
        if not any(tool == known.name for known in TOOLS):
            raise UnknownTool(tool)
        return getattr(self, f"_{tool}")(arguments)

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        print("closed", file=sys.stderr)

    def _echo(self, arguments: object) -> Answer:
        # A lone surrogate cannot be encoded: it is said in its escaped form.
        said = repr(arguments).encode("utf-8", "backslashreplace").decode()
        return _good({"said": said})

    def _fail(self, _: object) -> Answer:
        error = {"code": "E_VALIDATION", "message": "query: missing"}
        return Answer(msgspec.json.encode({"error": error, "request_id": "0"}), True)

    def _wait(self, _: object) -> Answer:
        self._cancelled.clear()
        print("waiting", file=sys.stderr)
        self._cancelled.wait()
        return _good({"cancelled": True})

    def _noise(self, _: object) -> Answer:
        print("a library speaks 検索")
        sys.stdout.write("and again")
        os.write(1, b"and past Python\n")
        os.system("echo a child speaks")
        return _good({"heard": os.read(0, 1).decode()})

    def _flood(self, _: object) -> Answer:
        for _ in range(10_000):
            print("x" * 100, file=sys.stderr)
        return _good({})

    def _errors(self, _: object) -> Answer:
        null = os.path.samestat(os.fstat(2), os.stat(os.devnull))
        return _good({"null": null})

    def _crash(self, _: object) -> Answer:
        raise ZeroDivisionError("secret")

    def _size(self, arguments: object) -> Answer:
        return _good({"codepoints": len(arguments["text"])})


def _good(content: dict) -> Answer:
    return Answer(msgspec.json.encode(content | {"request_id": "0"}), False)


def main() -> None:
    pipes = server.claim_streams()
    errors = server.Errors(2)
    sys.stdout = sys.stderr = errors
    server.host(Service, TOOLS, pipes)
    errors.finish()


if __name__ == "__main__":
    main()
