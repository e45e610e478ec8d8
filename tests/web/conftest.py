"""Servers for the tests of the HTTP door."""

import pytest

from tests.web.web import FAKE, REAL, Server


@pytest.fixture(scope="session")
def hasty():
    """A server of the fake hall that waits for nobody, and has room for little."""
    limits = ("HEAD_SECONDS_MAX=0.3", "BODY_SECONDS_MAX=0.5", "LARGE_BODIES_MAX=1")
    limits += ("WRITE_SECONDS_MAX=0.5", "SESSIONS_MAX=3")
    with Server(*FAKE, *limits) as server:
        yield server


@pytest.fixture(scope="session")
def small():
    """A server of the fake hall for three connections."""
    with Server(*FAKE, "CONNECTIONS_MAX=3") as server:
        yield server


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The server on an empty store."""
    path = tmp_path_factory.mktemp("web") / "store.db"
    with Server(*REAL, environment={"HADANO_DB": str(path)}) as server:
        yield server
