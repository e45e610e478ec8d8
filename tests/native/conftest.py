"""A store that several of the native tests read."""

import random

import apsw
import pytest

from tests.native.ranked import fresh, take


@pytest.fixture
def filled() -> apsw.Connection:
    """Nine segments of small pages, with every kind of term in them."""
    db = fresh(pgsz=100, automerge=0, crisismerge=16)
    chance = random.Random(1)
    words = ["function", "functions", "the", "go", "c", "rollback", "愛する", "東京"]
    for _ in range(9):
        with db:
            for _ in range(12):
                text = " ".join(chance.choices(words, k=60))
                take(db, ("add", chance.choice(words), [text]))
    return db
