"""Who may come in over HTTP: the address to listen on, the names of the server, the token.

Reads what a person put on the command line and decides on the head of a request. Knows nothing of
what is asked, and imports the standard library alone: `--make-token` must not wait for more.
"""

import hmac
import os
import re
import secrets
import socket
import stat
import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256
from ipaddress import ip_address
from typing import Final, NamedTuple

from hadano import files
from hadano.errors import SettingsError, invalid

LOOPBACK: Final = "127.0.0.1"
_ORIGIN: Final = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[^\[\]:\s/*]+)((?::[0-9]{1,5})?)")
_PORTS: Final = {"http": ":80", "https": ":443"}
#: RFC 6750: what may follow `Bearer`.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
#: 128 bits in base64, as good as any key; a made token has twice as many.
TOKEN_CHARACTERS_MIN: Final = 22
TOKEN_BYTES: Final = 32
#: Of a token file, so that a wrong path never reads a large file.
_FILE_BYTES_MAX: Final = 4_096

Headers = Iterable[tuple[bytes, bytes]]


class Address(NamedTuple):
    """Where to listen: a host as it was given, and a port, 0 for any that is free."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port as a URL has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(given: str) -> Address:
    """The address in `[HOST:]PORT`, an IPv6 host in brackets; ValueError where it is none."""
    found = re.fullmatch(r"(?:(\[[0-9A-Fa-f:.]+\]|[^\[\]:\s/]+):)?([0-9]{1,5})", given)
    if found is None or int(found[2]) > 65_535:
        raise ValueError(f"{given!r} is not [HOST:]PORT")
    return Address((found[1] or LOOPBACK).strip("[]"), int(found[2]))


def origin(given: str) -> str:
    """An origin as browsers spell it: scheme, host, and a port where it is not the scheme's own.
    ValueError where it is none; `*` and `null`, which many pages have in common, are none."""
    found = _ORIGIN.fullmatch(given.lower().rstrip("/"))
    if found is None:
        raise ValueError(f"{given!r} is no origin, such as https://example.org")
    port = "" if found[3] == _PORTS[found[1]] else found[3]
    return f"{found[1]}://{found[2]}{port}"


def bound(where: Address) -> socket.socket:
    """A socket bound to the address; E_VALIDATION in one line where that cannot be."""
    try:
        (family, kind, protocol, _, place), *_ = socket.getaddrinfo(
            *where, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise invalid("--http", f"{where.authority}: {_reason(error)}") from None
    except ValueError:  # A label that is empty or too long, or a codepoint that no name has.
        raise invalid("--http", f"{where.authority}: not the name of a machine") from None
    try:
        if sys.platform == "win32":  # There, the other option would let two servers share a port.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(place)
        sock.listen()
    except OSError as error:
        sock.close()
        raise invalid("--http", f"{where.authority}: {_reason(error)}") from None
    return sock


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def check_reach(sock: socket.socket, token: str | None) -> None:
    """SettingsError where others than this machine could call in without a token."""
    host = sock.getsockname()[0]
    if token is None and not ip_address(host.partition("%")[0]).is_loopback:
        raise SettingsError(
            f"--http: {host} can be reached from other machines, so callers need a token: make one "
            "with --make-token FILE and start with --token-file FILE"
        )


def make_token(path: str) -> str:
    """Writes a new token to a new file that its owner alone can read, and gives the file's whole
    path. E_VALIDATION where a file is there already; OSError where none can be made."""
    whole = os.path.abspath(os.path.expanduser(path))
    folder, name = os.path.split(whole)
    with files.draft(folder, name) as draft:
        with open(draft, "w", encoding="ascii") as stream:
            stream.write(secrets.token_urlsafe(TOKEN_BYTES) + "\n")
        if not files.publish_new(draft, whole):
            raise invalid("--make-token", f"{whole} is there already")
    return whole


def read_token(path: str) -> str:
    """The token in a file; SettingsError where others could have read it, or where it is none."""
    whole = os.path.abspath(os.path.expanduser(path))
    try:
        _check_owner(whole, os.stat(whole))  # To open a pipe that nobody writes to never ends.
        with open(whole, "rb") as stream:
            _check_owner(whole, os.fstat(stream.fileno()))
            text = stream.read(_FILE_BYTES_MAX).decode("ascii", "replace").strip()
    except OSError as error:
        raise SettingsError(f"--token-file: {whole}: {_reason(error)}") from None
    if len(text) < TOKEN_CHARACTERS_MIN or not _TOKEN.fullmatch(text):
        raise SettingsError(
            f"--token-file: {whole} holds no token: one line of at least {TOKEN_CHARACTERS_MIN} "
            "letters, digits and -._~+/ (--make-token FILE writes one)"
        )
    return text


def _check_owner(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SettingsError(f"--token-file: {path} is no file")
    if sys.platform == "win32":  # Access lists say more; a profile's folder is private.
        return
    if status.st_uid != os.geteuid():
        raise SettingsError(f"--token-file: {path} belongs to somebody else")
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"--token-file: others can read {path}; mend it with: chmod 600 {path}")


class Access:
    """The allow-lists and the token that the head of a request is held to."""

    def __init__(
        self,
        where: Address,
        token: str | None = None,
        hosts: Sequence[str] = (),
        origins: Sequence[str] = (),
    ) -> None:
        """`where` has the real port. `hosts` and `origins`, these as `origin` gives them, are
        allowed besides the server's own."""
        known = ["127.0.0.1", "localhost", "[::1]", where.authority.rpartition(":")[0], *hosts]
        own = [f"{name}:{where.port}" for name in known if not _has_port(name)]
        self._hosts = {name.lower() for name in [*own, *hosts]}
        # A browser leaves the port out of both headers where it is that of the scheme.
        if where.port == 80:
            self._hosts |= {name.lower() for name in known}
        self._origins = {f"http://{name}" for name in self._hosts}
        self._origins |= set(origins)
        self._digest = None if token is None else sha256(token.encode()).digest()

    def knows_host(self, headers: Headers) -> bool:
        """Whether the request is meant for this server. Where a page made a browser resolve its own
        name to this machine (DNS rebinding), Host is that page's name."""
        hosts = _values(headers, b"host")
        return len(hosts) == 1 and hosts[0].lower() in self._hosts

    def knows_origin(self, headers: Headers) -> bool:
        """Whether no page sent the request, or one that is allowed to."""
        return all(origin.lower() in self._origins for origin in _values(headers, b"origin"))

    def knows_caller(self, headers: Headers) -> bool:
        """Whether the request has the token, if there is one. The comparison takes as long for
        every token of the same length, and says nothing of the right one's."""
        if self._digest is None:
            return True
        values = _values(headers, b"authorization")
        scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        given = sha256(token.strip().encode()).digest()
        return hmac.compare_digest(given, self._digest) and scheme.lower() == "bearer"


def _has_port(name: str) -> bool:
    return re.search(r"(?:\]|^[^:]*):[0-9]+$", name) is not None


def _values(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]
