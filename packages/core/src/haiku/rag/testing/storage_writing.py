# ruff: noqa: D102 - a test's name is its documentation
"""Clauses 10 to 21 of the storage contract: writing and reading."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest

from haiku.rag.contracts.filters import Comparison
from haiku.rag.contracts.storage import Database, OpenMode
from haiku.rag.errors import DocumentConflictError
from haiku.rag.models import DocumentItem, EmbeddingIdentity
from haiku.rag.testing.storage_fixtures import (
    OpenDatabase,
    StorageFixtures,
    document,
    found_in_every_way,
    ids_of,
    text_query,
    vectors_of,
)

AWKWARD = "quote ' \" \\ %_ \r\n\ttab \u202eright-to-left\u202c 橋 🦀 e\u0301 [/red] {x} $HOME \x07"


class WritingClauses(StorageFixtures):
    """Clauses 10 to 21."""

    async def test_10_writing_returns_the_documents_as_stored(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        writes = [document("a", "b", title="two"), document("c", title="one", id="my-own-id"), document(title="none")]
        stored = await database.write(writes)
        assert [entry.title for entry in stored] == ["two", "one", "none"]
        assert [entry.chunk_count for entry in stored] == [2, 1, 0]
        assert stored[1].id == "my-own-id"
        assert len({entry.id for entry in stored}) == 3
        assert all(entry.created_at.tzinfo and entry.updated_at.tzinfo for entry in stored)

    async def test_11_a_document_is_found_by_id_uri_and_title(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        write = document("first text", uri="mem:1", title="Bridges", metadata={"year": 1926})
        stored, _ = await database.write([write, document("other", uri="mem:2", title="bridges")])
        assert stored.content == "first text"
        assert stored.metadata == {"year": 1926}
        for found in (
            await database.document_by_id(stored.id),
            await database.document_by_uri("mem:1"),
            await database.document_by_title("Bridges"),
        ):
            assert found == stored
        assert await database.document_by_id("nothing") is None
        assert await database.document_by_uri("mem:") is None
        assert await database.document_by_title("Bridge") is None

    async def test_12_a_known_uri_or_id_is_replaced_whole(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        cases: tuple[dict[str, Any], ...] = ({"uri": "mem:1"}, {"id": "known"})
        for known in cases:
            old = document(
                "outdated", "outdated too", title="old", items=_items("a", "b"), pictures={"a": b"1"}, **known
            )
            (before,) = await database.write([old])
            new = document("current", title="new", items=_items("c"), **known)
            (after,) = await database.write([new])
            assert after.id == before.id
            assert after.created_at == before.created_at
            assert after.title == "new"
            assert await database.chunks_by_id(ids_of(old)) == []
            assert not set(ids_of(old)) & await found_in_every_way(database, "outdated")
            assert set(ids_of(new)) <= await found_in_every_way(database, "current")
            assert [item.ref for item in await database.items(after.id)] == ["c"]
            assert await database.picture(after.id, "a") is None
        assert await database.count_documents(filter=None) == 2

    async def test_13_documents_without_uri_and_id_are_each_new(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        await database.write([document("same", title="same"), document("same", title="same")])
        await database.write([document("same", title="same")])
        assert await database.count_documents(filter=None) == 3

    async def test_14_items_and_pictures_come_back(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        items = [
            DocumentItem(ref="b", label="heading", text="Bridges", level=2, page=3, box=(1.0, 2.0, 3.0, 4.5)),
            DocumentItem(ref="a", label="picture", page=4),
        ]
        write = document("text", items=items, pictures={"a": b"\x00\xffpicture"}, page_images={3: b"page three"})
        (stored,) = await database.write([write])
        assert await database.items(stored.id) == items
        assert await database.picture(stored.id, "a") == b"\x00\xffpicture"
        assert await database.picture(stored.id, "page/3") == b"page three"
        assert await database.picture(stored.id, "b") is None
        assert await database.picture(stored.id, "page/4") is None
        assert await database.picture("nothing", "a") is None

    async def test_15_chunks_come_by_id_in_the_order_asked(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        write = document("zero", "one", "two", uri="mem:1", title="t", metadata={"k": "v"})
        details = {
            "headings": ["H"],
            "page_numbers": [2],
            "labels": ["table"],
            "doc_item_refs": ["x"],
            "metadata": {"m": 1},
        }
        write = replace(write, chunks=[chunk.model_copy(update=details) for chunk in write.chunks])
        (stored,) = await database.write([write])
        zero, one, two = ids_of(write)
        found = await database.chunks_by_id([two, "nothing", zero])
        assert [chunk.content for chunk in found] == ["two", "zero"]
        placed = {
            "document_id": stored.id,
            "document_uri": "mem:1",
            "document_title": "t",
            "document_meta": {"k": "v"},
        }
        assert found[0] == write.chunks[2].model_copy(update=placed)
        assert await database.chunks_by_id([]) == []
        assert [chunk.id for chunk in await database.chunks_by_id([one])] == [one]

    async def test_16_deleting_removes_every_part(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        gone, kept = document("gone words", uri="mem:1", pictures={"p": b"1"}), document("kept words", uri="mem:2")
        stored, _ = await database.write([gone, kept])
        assert await database.delete(stored.id) is True
        assert await database.delete(stored.id) is False
        assert await database.delete("nothing") is False
        assert await database.document_by_uri("mem:1") is None
        assert await database.chunks_by_id(ids_of(gone)) == []
        assert await database.items(stored.id) == []
        assert await database.picture(stored.id, "p") is None
        assert await found_in_every_way(database, "words") == set(ids_of(kept))

    async def test_17_updating_changes_what_is_given(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        write = document("some words", uri="mem:1", title="before", metadata={"a": 1}, items=_items("i"))
        (stored,) = await database.write([write])
        changed = await database.update(stored.id, uri="mem:2", title="after", metadata={"b": 2})
        assert changed is not None
        assert (changed.id, changed.uri, changed.title, changed.metadata) == (stored.id, "mem:2", "after", {"b": 2})
        assert changed.created_at == stored.created_at
        assert await database.document_by_uri("mem:1") is None
        assert await database.document_by_uri("mem:2") == changed
        assert changed.content == stored.content
        (chunk,) = await database.chunks_by_id(ids_of(write))
        assert (chunk.document_uri, chunk.document_title, chunk.document_meta) == ("mem:2", "after", {"b": 2})
        selected = await database.search(text_query("words", filter=Comparison("title", "=", "after")))
        assert selected["chunk_id"].to_pylist() == ids_of(write)
        assert [item.ref for item in await database.items(stored.id)] == ["i"]
        left = await database.update(stored.id, uri=None, title=None, metadata={})
        assert left is not None
        assert (left.uri, left.title, left.metadata) == ("mem:2", "after", {})
        assert await database.update("nothing", uri=None, title="x", metadata=None) is None
        (other,) = await database.write([document("other words", uri="mem:3")])
        with pytest.raises(DocumentConflictError):
            await database.update(other.id, uri="mem:2", title="taken", metadata=None)
        assert await database.document_by_uri("mem:2") == left
        assert await database.document_by_uri("mem:3") == other

    async def test_18_listing_is_by_creation_in_windows(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        for number in range(3):
            await database.write([document(f"text {number}", title=f"{number}{half}") for half in "ab"])
        (replaced,) = await database.write([document("new", uri="mem:1", title="last")])
        whole = await database.list_documents(limit=None, offset=0, filter=None, include_content=True)
        assert whole == sorted(whole, key=lambda entry: (entry.created_at, entry.id))
        assert [str(entry.title)[0] for entry in whole] == ["0", "0", "1", "1", "2", "2", "l"]
        assert whole[-1] == replaced
        windows = [
            await database.list_documents(limit=3, offset=offset, filter=None, include_content=True)
            for offset in (0, 3, 6, 9)
        ]
        assert [entry for window in windows for entry in window] == whole
        bare = await database.list_documents(limit=None, offset=0, filter=None, include_content=False)
        assert [entry.id for entry in bare] == [entry.id for entry in whole]
        assert {entry.content for entry in bare} == {None}
        assert await database.list_documents(limit=0, offset=0, filter=None, include_content=False) == []
        assert await database.count_documents(filter=None) == 7

    async def test_19_texts_come_back_as_they_were(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        write = document(AWKWARD, uri=AWKWARD, title=AWKWARD, metadata={AWKWARD: [AWKWARD, 1.5, True, None]})
        (stored,) = await database.write([write])
        found = await database.document_by_uri(AWKWARD)
        assert found == stored
        assert (stored.title, stored.content, stored.metadata) == (AWKWARD, AWKWARD, dict(write.metadata))
        (chunk,) = await database.chunks_by_id(ids_of(write))
        assert chunk.content == AWKWARD
        assert await database.write([]) == []

    async def test_20_writers_of_one_uri_at_once_leave_one_document(self, open_database: OpenDatabase) -> None:
        handles = [await open_database() for _ in range(4)]
        async with anyio.create_task_group() as group:
            for number, handle in enumerate(handles):
                group.start_soon(_write_versions, handle, number)
        database = await open_database(mode=OpenMode.READ)
        (left,) = await database.list_documents(limit=None, offset=0, filter=None, include_content=True)
        table = await database.search(text_query("version", depth=100))
        chunks = await database.chunks_by_id(table["chunk_id"].to_pylist())
        assert sorted(chunk.order for chunk in chunks) == [0, 1, 2]
        assert "\n\n".join(chunk.content for chunk in sorted(chunks, key=lambda chunk: chunk.order)) == left.content
        assert {chunk.document_id for chunk in chunks} == {left.id}

    async def test_21_info_counts(self, open_database: OpenDatabase, identity: EmbeddingIdentity) -> None:
        database = await open_database()
        await database.write([document("a", "b"), document("c")])
        info = await database.info()
        assert (info.documents, info.chunks, info.identity) == (2, 3, identity)
        assert info.storage


async def _write_versions(database: Database, writer: int) -> None:
    for number in range(3):
        texts = [f"version {writer}.{number} part {part}" for part in range(3)]
        await database.write([document(*texts, uri="mem:contended", vectors=vectors_of(3))])


def _items(*refs: str) -> list[DocumentItem]:
    return [DocumentItem(ref=ref, label="paragraph", text=ref) for ref in refs]
