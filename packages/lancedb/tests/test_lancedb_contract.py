"""What every storage engine keeps, kept by this one."""

import pytest

from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage
from haiku.rag.testing import StorageContract


class TestLanceDBStorage(StorageContract):
    storage_name = "lancedb"
    suffix = ".lancedb"
    text_filter = "title = 'alpha'"

    @pytest.fixture
    def storage(self) -> LanceDBStorage:
        return LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=0))
