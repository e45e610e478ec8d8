"""A store for each test, and one for each module whose tests do not get in each other's way."""

from collections.abc import Iterator

import pytest

from tests.tools.store import Store


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    with Store(tmp_path / "store.db") as store:
        yield store


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Store]:
    """A store that all tests of a module share."""
    with Store(tmp_path_factory.mktemp("shared") / "store.db") as store:
        yield store
