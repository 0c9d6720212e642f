"""The history of a database: the versions of its tables."""

from datetime import UTC, datetime, timedelta

import pytest

from haiku.rag.contracts import OpenMode
from haiku.rag.storage.lancedb import history

pytestmark = pytest.mark.anyio


async def test_history_tells_what_became_of_every_part_newest_first(database, make):
    await database.write([make("a.md", pictures={"p": b"x"})])
    (stored,) = await database.write([make("a.md", "beta " * 50)])
    await database.create_tag("v1")
    await database.update(stored.id, uri=None, title="T", metadata=None)
    await database.delete(stored.id)
    entries = await database.history(limit=None)
    assert {entry.part for entry in entries} == {"documents", "chunks", "items", "pictures"}
    assert [entry.at for entry in entries] == sorted((entry.at for entry in entries), reverse=True)
    documents = [entry for entry in entries if entry.part == "documents"]
    assert [(entry.version, entry.operation, entry.tags) for entry in documents] == [
        (5, "1 row removed", []),
        (4, "rows rewritten", []),
        (3, "rows rewritten", ["v1"]),
        (2, "1 row added", []),
        (1, "created", []),
    ]
    chunks = {entry.operation for entry in entries if entry.part == "chunks"}
    assert {"created", "1 row added", "commit"} <= chunks
    assert sum("v1" in entry.tags for entry in entries) == 4
    now = datetime.now(UTC)
    assert all(now - timedelta(minutes=5) < entry.at <= now + timedelta(seconds=5) for entry in entries)


@pytest.mark.parametrize("limit", [0, 1, 3, 1000])
async def test_a_limit_counts_all_parts_together(database, make, limit):
    await database.write([make("a.md", pictures={"p": b"x"})])
    whole = await database.history(limit=None)
    assert await database.history(limit=limit) == whole[:limit]


async def test_a_reader_and_an_empty_database_have_a_history(database, open_database):
    reader = await open_database(mode=OpenMode.READ)
    assert [entry.operation for entry in await reader.history(limit=None)] == ["created"] * 4


async def test_a_version_whose_predecessor_is_gone_tells_no_operation(database, make):
    class Cleaned:
        """A table of which only two versions are left, and nothing that changed between them."""

        def __init__(self):
            self.tags = self

        async def list(self):
            return {}

        async def list_versions(self):
            figures = {"total_rows": "3", "total_files_size": "100"}
            return [{"version": number, "timestamp": datetime.now(), "metadata": figures} for number in (7, 8)]

    entries = await history._versions("documents", Cleaned())
    assert [(entry.version, entry.operation) for entry in entries] == [(8, "commit"), (7, "commit")]
