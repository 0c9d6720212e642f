"""What the tests that kill and crowd share: where the database is, and processes of which none outlives its test."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import harness


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return tmp_path / "notes.lancedb"


@pytest.fixture
def victims(location: Path) -> Iterator[harness.Victims]:
    own = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    started = harness.Victims(location, {**own, "PYTHONPATH": path})
    yield started
    started.end()
