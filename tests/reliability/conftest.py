"""The store of the tests of tools, under the same name."""

from tests.tools.conftest import store

__all__ = ["store"]
