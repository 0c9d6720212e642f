"""What every storage engine keeps, kept by this one."""

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from haiku.rag.contracts import DatabaseRef
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage
from haiku.rag.testing import StorageContract
from haiku.rag.testing.storage_fixtures import MakeOutdated, MakeRef

FIXTURES = Path(__file__).with_name("fixtures")


class TestLanceDBStorage(StorageContract):
    storage_name = "lancedb"
    suffix = ".lancedb"
    text_filter = "title = 'alpha'"
    capabilities = frozenset({"checks", "history", "migrations", "rebuild", "tags", "upkeep"})
    finds_phrases = True
    finds_identifiers = True

    @pytest.fixture
    def storage(self) -> LanceDBStorage:
        return LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=0))

    @pytest.fixture
    def make_outdated(self, make_ref: MakeRef, tmp_path: Path) -> MakeOutdated:
        async def make(name: str) -> DatabaseRef:
            with zipfile.ZipFile(FIXTURES / "schema-1.zip") as archive:
                archive.extractall(tmp_path)
            return replace(make_ref(name), location=str(tmp_path / "db"))

        return make
