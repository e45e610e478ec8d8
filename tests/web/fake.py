"""The HTTP door over a hall of tools that do nothing, with limits as a test wants them.

    python -m tests.web.fake NAME=NUMBER...   a constant of the door's modules, and its value

`hold` works until a line comes in on standard input; `wait` until it is cancelled.
"""

import os
import select
import sys

from hadano import server
from hadano.service import Answer
from hadano.web import access, door, line, listener
from tests.wire import fake

MODULES = (server, door, line, listener)
TOOLS = (
    *fake.TOOLS,
    fake.Tool("hold", "Hold", "Waits for its standard input.", fake._ANY, fake._ANY, fake._SAFE),
)


class Service(fake.Service):
    """`hold` and `wait` say on standard error that they have begun, `cancel` that it was called."""

    def __init__(self, reading: int) -> None:
        super().__init__()
        self._reading = reading
        self._woken, self._waking = os.pipe()
        self._holds = False

    def call(self, tool: str, arguments: object) -> Answer:
        return self._hold() if tool == "hold" else super().call(tool, arguments)

    def cancel(self) -> None:
        print("cut", file=sys.stderr)
        if self._holds:
            os.write(self._waking, b"\n")
        super().cancel()

    def _hold(self) -> Answer:
        self._holds = True
        print("holding", file=sys.stderr)
        ready, _, _ = select.select([self._reading, self._woken], [], [])
        self._holds = False
        return fake._good({"cut": not os.read(ready[0], 1) or self._woken in ready})


def main() -> None:
    reading, _ = server.claim_streams()
    errors = server.Errors(2)
    sys.stdout = sys.stderr = errors
    for setting in sys.argv[1:]:
        name, number = setting.split("=")
        for module in MODULES:
            if hasattr(module, name):
                setattr(module, name, float(number) if "." in number else int(number))
    listening = access.bound(access.Address("127.0.0.1", 0))
    where = access.Address("127.0.0.1", listening.getsockname()[1])

    def opened() -> Service:
        print(f"a fake serves at http://{where.authority}/mcp", file=sys.stderr)
        return Service(reading)

    def on_stop(stop) -> None:
        server._stop_on_signals(stop, server.HTTP_EXIT_SECONDS_MAX)

    listener.host(opened, TOOLS, listening, access.Access(where), on_stop)
    errors.finish()


if __name__ == "__main__":
    main()
