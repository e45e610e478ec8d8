"""Servers for the tests of the wire. What is not there on Windows is said where it is needed."""

import pytest

from tests.wire.process import FAKE, REAL, Process, initialize


@pytest.fixture
def fake():
    """A server of the fake hall, the handshake done."""
    with Process(*FAKE) as process:
        process.ask(initialize())
        yield process


@pytest.fixture
def database(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def environment(database):
    return {"HADANO_DB": str(database)}


@pytest.fixture
def real(environment):
    """The server on an empty store, the handshake done."""
    with Process(*REAL, environment=environment) as process:
        process.ask(initialize())
        yield process
