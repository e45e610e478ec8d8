"""What the manual gives to copy: the proxy, the unit, the agent; tried where there are such."""

import configparser
import os
import plistlib
import re
import shutil
import socket
import ssl
import subprocess

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from hadano.web import door
from tests.web.web import FAKE, REAL, Server
from tests.wire.process import PATIENCE_SECONDS, ROOT, call, enveloped
from tests.wire.walk import MODES, walk

NAME = "notes.example.org"
MANUAL = (ROOT / "docs" / "manual.md").read_text("utf-8")
nginx = pytest.mark.skipif(not shutil.which("nginx"), reason="needs nginx")


def given(language: str) -> str:
    """The one block of the manual's chapter on HTTP in a language."""
    chapter = MANUAL.partition("## Over HTTP")[2]
    (block,) = re.findall(rf"```{language}\n(.*?)```", chapter, re.DOTALL)
    return block


def test_the_manual_names_the_size_that_is_refused():
    assert f"more than {door.BODY_BYTES_MAX:,} bytes" in MANUAL


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Proxy:
    """nginx in front of a server, as the manual has it, with a certificate of its own making."""

    def __init__(self, folder, server):
        self.port = free_port()
        self.certificate = folder / "certificate.pem"
        key = folder / "key.pem"
        make = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -keyout".split()
        names = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
        command = [*make, key, "-out", self.certificate, *names]
        subprocess.run(command, check=True, capture_output=True)
        site = (
            given("nginx")
            .replace("listen 443", f"listen 127.0.0.1:{self.port}")
            .replace("127.0.0.1:8080", f"{server.host}:{server.port}")
            .replace("/etc/ssl/notes.example.org.pem", str(self.certificate))
            .replace("/etc/ssl/private/notes.example.org.key", str(key))
        )
        paths = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "\n".join(f"{name}_temp_path {folder}/{name};" for name in paths)
        configuration = folder / "nginx.conf"
        user = "user root; " if os.geteuid() == 0 else ""
        configuration.write_text(
            f"{user}daemon off; pid {folder}/pid; error_log stderr notice;\nevents {{}}\n"
            f"http {{ access_log {folder}/access.log;\n{temporary}\n{site}}}\n"
        )
        self._process = subprocess.Popen(
            ["nginx", "-c", configuration, "-p", folder], stderr=subprocess.PIPE, text=True
        )
        for line in self._process.stderr:
            if "start worker process " in line:
                return
        raise AssertionError("nginx did not start")

    def close(self):
        self._process.terminate()
        self._process.communicate(timeout=PATIENCE_SECONDS)

    def client(self, **headers):
        """A client that knows the certificate, and where the name is."""
        context = ssl.create_default_context(cafile=self.certificate)
        transport = httpx2.AsyncHTTPTransport(verify=context)
        headers = {"Host": NAME} | headers
        return httpx2.AsyncClient(transport=_Here(transport), headers=headers)

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}/mcp"


class _Here(httpx2.AsyncBaseTransport):
    """Asks for the site by its name, which no resolver knows."""

    def __init__(self, transport):
        self._transport = transport

    async def handle_async_request(self, request):
        request.extensions["sni_hostname"] = NAME
        return await self._transport.handle_async_request(request)

    async def aclose(self):
        await self._transport.aclose()


@nginx
@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_client_walks_through_all_seven_tools_behind_nginx(tmp_path, mode):
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("t" * 43)
    environment = {"HADANO_DB": str(tmp_path / "store.db")}

    async def ask(proxy):
        async with proxy.client(authorization="Bearer " + "t" * 43) as http:
            transport = streamable_http_client(proxy.url, http_client=http)
            async with Client(transport, mode=mode) as client:
                await walk(client)
            large = await http.post(proxy.url, content=b" " * (door.BODY_BYTES_MAX + 1))
            assert large.status_code == 413
        async with proxy.client() as http:
            refused = await http.post(proxy.url, json={})
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == 'Bearer realm="hadano"'

    with Server(*REAL, "--token-file", str(token), environment=environment) as server:
        proxy = Proxy(tmp_path, server)
        try:
            anyio.run(ask, proxy)
        finally:
            proxy.close()
    assert "t" * 43 not in (tmp_path / "access.log").read_text()


@nginx
def test_who_hangs_up_at_nginx_takes_the_call_back(tmp_path):
    message = enveloped(call(1, "wait"))
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}
    headers |= {"mcp-name": "wait", "accept": "application/json"}

    with Server(*FAKE) as server:
        proxy = Proxy(tmp_path, server)

        async def ask():
            async with proxy.client(**headers) as http, anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: http.post(proxy.url, json=message))
                await anyio.to_thread.run_sync(server.hear, "waiting")
                tasks.cancel_scope.cancel()
            await anyio.to_thread.run_sync(server.hear, "cut")

        try:
            anyio.run(ask)
        finally:
            proxy.close()


def test_the_launch_agent_is_one():
    agent = plistlib.loads(given("xml").encode())
    assert agent["ProgramArguments"][1:5] == ["-m", "hadano.server", "--http", "8080"]


def test_the_unit_is_one(tmp_path):
    text = given("ini")
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(text)
    assert " -m hadano.server --http 8080 " in unit["Service"]["ExecStart"]
    if shutil.which("systemd-analyze"):
        path = tmp_path / "hadano.service"
        path.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/sh", text))
        said = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True
        )
        assert "hadano.service" not in said.stderr
