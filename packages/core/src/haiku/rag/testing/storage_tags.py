# ruff: noqa: D102 - a test's name is its documentation
"""Clauses 52 to 60 and 63 of the storage contract: history and tags."""

from __future__ import annotations

from typing import cast

import anyio
import pytest

from haiku.rag.contracts.maintenance import CheckedDatabase, HistoricDatabase, TaggedDatabase, UpkeepDatabase
from haiku.rag.contracts.storage import DatabaseRef, OpenMode
from haiku.rag.errors import ReadOnlyError, TagError
from haiku.rag.testing.storage_fixtures import (
    MakeRef,
    OpenDatabase,
    StorageFixtures,
    document,
    found_in_every_way,
    ids_of,
)
from haiku.rag.testing.storage_versions import URI, documents_of, held, version

MOMENTS = (0.0, 0.002, 0.01, 0.03)
"""Seconds after which an operation is broken off."""
NO_NAMES = ("", " ", "line\nbreak", "\udcff")


class TagClauses(StorageFixtures):
    """Clauses 52 to 60 and 63."""

    @pytest.fixture
    def open_tagged(self, open_database: OpenDatabase) -> OpenDatabase:
        """Opens databases of an engine that keeps tags."""
        self.needs("tags")
        return open_database

    async def test_52_history_lists_commits_newest_first(self, open_database: OpenDatabase) -> None:
        self.needs("history")
        database = cast("HistoricDatabase", await open_database())
        (stored,) = await database.write([version(1)])
        known = await _known(database)
        await database.update(stored.id, uri=None, title="changed", metadata=None)
        assert await _known(database) > known
        entries = await database.history(limit=None)
        assert sorted(entries, key=lambda entry: entry.at, reverse=True) == entries
        assert all(entry.at.utcoffset() is not None and entry.part and entry.operation for entry in entries)
        assert len(await database.history(limit=1)) == 1

    async def test_53_a_tag_is_listed_by_its_name(self, open_tagged: OpenDatabase) -> None:
        database = await _tagged(open_tagged)
        assert await database.tags() == []
        await database.write([version(1)])
        second, first = await database.create_tag("second"), await database.create_tag("first")
        assert (first.name, second.name, first.complete, second.complete) == ("first", "second", True, True)
        assert all(tag.created_at is None or tag.created_at.utcoffset() is not None for tag in (first, second))
        await database.close()
        reader = await _tagged(open_tagged, mode=OpenMode.READ)
        assert await reader.tags() == [first, second]
        if "history" in self.capabilities:
            entries = await cast("HistoricDatabase", reader).history(limit=None)
            assert {name for entry in entries for name in entry.tags} == {"first", "second"}

    async def test_54_at_a_tag_everything_is_as_it_was(self, open_tagged: OpenDatabase) -> None:
        database = await _tagged(open_tagged)
        gone = document("gone passage", uri="mem:gone", page_images={1: b"page"})
        _, deleted, renamed = await database.write([version(1), gone, document("stays", uri="mem:stays")])
        before = await documents_of(database)
        await database.create_tag("then")
        await database.write([version(2), document("new passage", uri="mem:new")])
        await database.delete(deleted.id)
        await database.update(renamed.id, uri=None, title="renamed", metadata=None)
        if "upkeep" in self.capabilities:
            assert not (await cast("UpkeepDatabase", database).vacuum(retention_seconds=0, dry_run=False)).failed
        then = await open_tagged(mode=OpenMode.READ, tag="then")
        assert await documents_of(then) == before
        assert (await held(then), await held(database)) == (1, 2)
        assert await found_in_every_way(then, "gone") >= {*ids_of(gone)}
        assert await then.picture(deleted.id, "page/1") == b"page"
        assert await then.document_by_uri("mem:new") is None
        assert (await then.info()).documents == await then.count_documents(filter=None) == 3

    async def test_55_what_is_open_at_a_tag_cannot_be_written(self, open_tagged: OpenDatabase) -> None:
        database = await _tagged(open_tagged)
        (stored,) = await database.write([version(1)])
        await database.create_tag("then")
        then = await _tagged(open_tagged, mode=OpenMode.READ, tag="then")
        for write in (
            lambda: then.write([version(2)]),
            lambda: then.delete(stored.id),
            lambda: then.create_tag("more"),
            lambda: then.delete_tag("then"),
            lambda: then.restore_tag("then"),
        ):
            with pytest.raises(ReadOnlyError):
                await write()
        for mode in (OpenMode.WRITE, OpenMode.CREATE):
            with pytest.raises(TagError):
                await open_tagged(mode=mode, tag="then")
        assert (await held(database), [tag.name for tag in await database.tags()]) == (1, ["then"])

    async def test_56_a_name_that_will_not_do_is_a_tag_error(self, open_tagged: OpenDatabase) -> None:
        database = await _tagged(open_tagged)
        await database.write([version(1)])
        await database.create_tag("then")
        for name in ("then", *NO_NAMES):
            with pytest.raises(TagError):
                await database.create_tag(name)
        for name in ("never", *NO_NAMES):
            for operation in (database.delete_tag, database.restore_tag):
                with pytest.raises(TagError):
                    await operation(name)
            with pytest.raises(TagError):
                await open_tagged(mode=OpenMode.READ, tag=name)
        assert [tag.name for tag in await database.tags()] == ["then"]

    async def test_57_deleting_a_tag_forgets_its_name_only(self, open_tagged: OpenDatabase) -> None:
        database = await _tagged(open_tagged)
        await database.write([version(1)])
        await database.create_tag("then")
        await database.delete_tag("then")
        assert await database.tags() == []
        with pytest.raises(TagError):
            await open_tagged(mode=OpenMode.READ, tag="then")
        assert await held(database) == 1
        assert (await database.create_tag("then")).name == "then"

    async def test_58_restoring_brings_everything_back_and_can_be_undone(
        self, open_tagged: OpenDatabase, staleness_s: float
    ) -> None:
        database, reader = await _tagged(open_tagged), await open_tagged(mode=OpenMode.READ)
        _, deleted = await database.write([version(1), version(5, "mem:deleted")])
        old = await documents_of(database)
        await database.create_tag("then")
        await database.write([version(2), version(3, "mem:new")])
        await database.delete(deleted.id)
        new = await documents_of(database)
        before = await database.restore_tag("then")
        await anyio.sleep(staleness_s)
        for seen in (database, reader):
            assert await documents_of(seen) == old
            assert [await held(seen, uri) for uri in (URI, "mem:deleted", "mem:new")] == [1, 5, None]
        assert before in {tag.name for tag in await database.tags() if tag.complete}
        assert await documents_of(await open_tagged(mode=OpenMode.READ, tag=before)) == new
        await database.restore_tag(before)
        assert await documents_of(database) == new
        assert [await held(database, uri) for uri in (URI, "mem:deleted", "mem:new")] == [2, None, 3]
        await database.write([version(9)])
        assert await held(database) == 9

    async def test_59_a_tag_that_is_made_while_another_writes_names_a_whole_state(
        self, open_tagged: OpenDatabase
    ) -> None:
        database, writer = await _tagged(open_tagged), await open_tagged()
        await writer.write([version(0)])

        async def write() -> None:
            for number in range(1, 9):
                await writer.write([version(number)])

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            for number in range(3):
                await database.create_tag(f"v{number}")
        seen = [await held(await open_tagged(mode=OpenMode.READ, tag=f"v{number}")) for number in range(3)]
        assert None not in seen
        assert sorted(seen, key=str) == seen
        assert await held(writer) == 8

    async def test_60_looking_changes_nothing(self, open_tagged: OpenDatabase, make_ref: MakeRef) -> None:
        writer = await _tagged(open_tagged)
        await writer.write([version(1)])
        await writer.create_tag("then")
        await writer.close()
        files = await _files(make_ref("one"))
        reader = await _tagged(open_tagged, mode=OpenMode.READ)
        then = await open_tagged(mode=OpenMode.READ, tag="then")
        assert (await held(reader), await held(then), len(await reader.tags())) == (1, 1, 1)
        if "history" in self.capabilities:
            assert await _known(cast("HistoricDatabase", reader)) == await _known(cast("HistoricDatabase", reader))
        if "checks" in self.capabilities:
            await cast("CheckedDatabase", reader).check(fix=False)
        for database in (reader, then):
            await database.close()
        assert await _files(make_ref("one")) == files

    async def test_63_what_is_broken_off_leaves_every_document_whole(self, open_tagged: OpenDatabase) -> None:
        database = await _tagged(open_tagged)
        await database.write([version(1)])
        await database.create_tag("then")
        await database.write([version(2)])
        for number, seconds in enumerate(MOMENTS):
            with anyio.move_on_after(seconds):
                await database.create_tag(f"cut-{number}")
            with anyio.move_on_after(seconds):
                await database.restore_tag("then")
            assert await held(database) in (1, 2)
            if "upkeep" in self.capabilities:
                with anyio.move_on_after(seconds):
                    await cast("UpkeepDatabase", database).vacuum(retention_seconds=0, dry_run=False)
            assert await held(database) in (1, 2)
        for tag in await database.tags():
            if tag.complete:
                assert await held(await open_tagged(mode=OpenMode.READ, tag=tag.name)) in (1, 2)
        await database.restore_tag("then")
        assert (await held(database), await database.count_documents(filter=None)) == (1, 1)


async def _tagged(
    open_database: OpenDatabase, *, mode: OpenMode = OpenMode.CREATE, tag: str | None = None
) -> TaggedDatabase:
    return cast("TaggedDatabase", await open_database(mode=mode, tag=tag))


async def _known(database: HistoricDatabase) -> set[tuple[str, int]]:
    return {(entry.part, entry.version) for entry in await database.history(limit=None)}


async def _files(ref: DatabaseRef) -> dict[str, int]:
    """What lies at a local path, with sizes."""
    if ref.path is None:
        return {}
    return {str(path): (await path.stat()).st_size async for path in anyio.Path(ref.path).rglob("*")}
