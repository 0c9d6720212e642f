"""What core asks of every storage engine, asked of this one."""

from pathlib import Path

import pytest
from acme_sqlstore.storage import SqlStorage

from haiku.rag.contracts import DatabaseRef
from haiku.rag.testing import StorageContract
from haiku.rag.testing.storage_fixtures import MakeRef


class TestSqlStorage(StorageContract):
    storage_name = "acme-sql"
    searches_many = True

    @pytest.fixture
    def storage(self) -> SqlStorage:
        return SqlStorage()

    @pytest.fixture
    def make_ref(self, tmp_path: Path) -> MakeRef:
        file = tmp_path / "store.sqlite"
        return lambda name: DatabaseRef(
            name=name, location=f"acme-sql://{file}#{name}", storage="acme-sql", searches_many=True
        )
