"""Who is let in: addresses, token files, allow-lists; and how a start is refused."""

import os
import re
import socket
import stat
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hadano.errors import HadanoError, SettingsError
from hadano.web import access
from hadano.web.access import Access, Address
from tests.wire.process import ROOT, posix

TOKEN = "k" * 43


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        ("8080", "127.0.0.1", 8080),
        ("0", "127.0.0.1", 0),
        ("localhost:8080", "localhost", 8080),
        ("192.0.2.7:65535", "192.0.2.7", 65_535),
        ("[::1]:80", "::1", 80),
    ],
)
def test_an_address_is_a_port_with_or_without_a_host(given, host, port):
    assert access.address(given) == (host, port)


@pytest.mark.parametrize(
    "given", ["", "http", ":80", "host:", "65536", "-1", "8080x", "::1:80", "[::1]", "a b:80", "٣٣"]
)
def test_anything_else_is_no_address(given):
    with pytest.raises(ValueError, match=r"\[HOST:\]PORT"):
        access.address(given)


def head(**headers):
    return [(k.replace("_", "-").encode(), v.encode("latin-1")) for k, v in headers.items()]


@pytest.fixture
def gate():
    return Access(
        Address("192.0.2.7", 8080),
        TOKEN,
        ["notes.example.org", "box:9"],
        [access.origin("https://App.example.org/")],
    )


@pytest.mark.parametrize(
    "host",
    "127.0.0.1:8080 localhost:8080 LOCALHOST:8080 [::1]:8080 192.0.2.7:8080 notes.example.org "
    "notes.example.org:8080 box:9".split(),
)
def test_the_servers_own_names_are_known_and_those_given(gate, host):
    assert gate.knows_host(head(host=host))


@pytest.mark.parametrize(
    "host",
    "localhost localhost:80 localhost:8080.evil.example evil.example:8080 box box:8080 "
    "notes.example.org.evil.example localhost:8080@evil.example *".split(),
)
def test_other_names_are_not(gate, host):
    assert not gate.knows_host(head(host=host))


def test_a_request_with_no_name_or_with_two_is_not_known(gate):
    assert not gate.knows_host([])
    assert not gate.knows_host(head(host="localhost:8080") * 2)


def test_on_the_port_of_http_a_name_needs_none():
    assert Access(Address("127.0.0.1", 80)).knows_host(head(host="localhost"))


@pytest.mark.parametrize(
    ("origin", "known"),
    [
        ("http://localhost:8080", True),
        ("https://app.example.org", True),
        ("https://localhost:8080", False),
        ("http://localhost:3000", False),
        ("http://app.example.org", False),
        ("https://evil.example", False),
        ("null", False),
        ("", False),
        ("*", False),
    ],
)
def test_only_pages_of_known_origins_may_ask(gate, origin, known):
    assert gate.knows_origin(head(origin=origin)) is known


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://Example.org/", "https://example.org"),
        ("https://example.org:443", "https://example.org"),
        ("http://example.org:80", "http://example.org"),
        ("http://example.org:443", "http://example.org:443"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_origin_is_spelled_as_browsers_do(given, origin):
    assert access.origin(given) == origin


@pytest.mark.parametrize(
    "given", ["", "*", "null", "x", "http://", "https://*.example.org", "https://a.b/c", "ftp://a"]
)
def test_what_is_no_origin_cannot_be_allowed(given):
    with pytest.raises(ValueError, match="is no origin"):
        access.origin(given)


def test_what_is_no_page_sends_no_origin(gate):
    assert gate.knows_origin([])


@pytest.mark.parametrize("value", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER  {TOKEN} "])
def test_the_token_is_let_in(gate, value):
    assert gate.knows_caller(head(authorization=value))


@pytest.mark.parametrize(
    "value",
    [
        *("", "Bearer", "Bearer ", "Bearer é", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}"),
        *(f"Bearer {TOKEN}k", f"Bearer {TOKEN.upper()}", f"Bearer {TOKEN} {TOKEN}"),
    ],
)
def test_everything_else_is_not(gate, value):
    assert not gate.knows_caller(head(authorization=value))


def test_a_token_beside_another_is_not_let_in(gate):
    assert not gate.knows_caller(head(authorization=f"Bearer {TOKEN}") * 2)


def test_a_made_token_is_one_that_its_owner_alone_can_read(tmp_path):
    path = tmp_path / "token"
    assert access.make_token(str(path)) == str(path)
    token = access.read_token(str(path))
    assert len(token) == 43
    if os.name != "nt":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["token"]


@pytest.mark.parametrize("text", ["", "\n", "short\n", "k" * 21, "k" * 30 + " k", "k" * 43 + "\nk"])
def test_a_file_without_a_token_is_refused(tmp_path, text):
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(SettingsError, match="holds no token"):
        access.read_token(str(path))


@posix
def test_a_pipe_is_no_token_file(tmp_path):
    os.mkfifo(tmp_path / "token", 0o600)
    with pytest.raises(SettingsError, match="is no file"):
        access.read_token(str(tmp_path / "token"))


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610])
def test_a_token_that_others_can_read_is_refused(tmp_path, mode):
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(mode)
    with pytest.raises(SettingsError, match=f"chmod 600 {path}"):
        access.read_token(str(path))


@pytest.fixture
def start(tmp_path):
    """Starts the server with these arguments, expecting a refusal: its status and what it said."""

    def start(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "hadano.server", *arguments],
            capture_output=True,
            text=True,
            env=os.environ | {"HADANO_DB": str(tmp_path / "store.db")},
            cwd=ROOT,
            timeout=60,
        )
        assert done.stdout == ""
        assert not (tmp_path / "store.db").exists()
        return done.returncode, done.stderr

    return start


def test_an_open_address_without_a_token_is_refused_with_what_to_do(start):
    status, said = start("--http", "0.0.0.0:0")
    assert (status, said.count("\n")) == (2, 1)
    assert "--make-token FILE and start with --token-file FILE" in said


@posix
def test_a_port_in_use_is_one_line_and_status_1(start):
    with access.bound(Address("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, said = start("--http", str(port))
    assert (status, said.count("\n")) == (1, 1)
    assert f"127.0.0.1:{port}: address already in use" in said


@pytest.mark.parametrize(
    "host", ["no.such.name.invalid", "x" * 64, "é" * 64, "a..b", ".", "\udcff", "\x1b"]
)
def test_a_name_that_no_machine_has_is_one_line_and_status_1(start, host):
    status, said = start("--http", f"{host}:0")
    assert (status, said.count("\n"), said[:21]) == (1, 1, "E_VALIDATION: --http:")


def said_of(where):
    """What a start at an address is refused with, where it is."""
    try:
        access.bound(where).close()
    except HadanoError as refused:
        return str(refused)
    return None


def is_address(given):
    return re.fullmatch(r"[^\[\]:\s/]+", given) is not None


@given(st.one_of(st.text(st.characters()), st.text("a.é-", max_size=300)).filter(is_address))
def test_any_host_is_listened_on_or_refused_in_one_line(host):
    def looked_up(*asked, flags=0, **more):
        """As a name is looked up, but for asking the network."""
        return getaddrinfo(*asked, flags=flags | socket.AI_NUMERICHOST, **more)

    getaddrinfo = socket.getaddrinfo
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", looked_up)
        said = said_of(access.address(f"{host}:0"))
    assert said is None or (said[:22], said.count("\n")) == ("E_VALIDATION: --http: ", 0)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--http",),
        ("--http", "port"),
        ("--token-file", "f"),
        ("--allow-host", "h"),
        ("--make-token", "f", "--http", "0"),
        ("--token", TOKEN),
    ],
)
def test_wrong_usage_is_status_2(start, arguments):
    assert start(*arguments)[0] == 2


def test_a_token_file_that_is_there_is_not_overwritten(start, tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN)
    status, said = start("--make-token", str(path))
    assert (status, said.count("\n"), path.read_text()) == (1, 1, TOKEN)


def test_a_token_file_that_is_missing_is_one_line_and_status_2(start, tmp_path):
    status, said = start("--http", "0", "--token-file", str(tmp_path / "none"))
    assert (status, said.count("\n")) == (2, 1)
