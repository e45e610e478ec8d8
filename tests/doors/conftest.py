"""A store that the doors' tests start from."""

from pathlib import Path

import pytest

from tests.doors import kit


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return kit.store(tmp_path / "notes.db")
