"""Writes: the parts first under a fresh revision, then one merge of the documents' rows, which is the commit."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import anyio
import pyarrow as pa

from haiku.rag.contracts import DocumentWrite
from haiku.rag.errors import StorageError
from haiku.rag.models import Document
from haiku.rag.models.text import clean_text
from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.live import LiveTables
from haiku.rag.storage.lancedb.placing import batch_keys, holders_condition, place, rewritten, uri_is_taken
from haiku.rag.storage.lancedb.rows import (
    Placed,
    Vectors,
    as_json,
    checked_vectors,
    chunk_rows,
    document_key,
    document_rows,
    item_rows,
    picture_rows,
    revision_nanoseconds,
)
from haiku.rag.storage.lancedb.state import document_from_row
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.text import one_of, quoted
from haiku.rag.storage.lancedb.upkeep import Upkeep

T = TypeVar("T")

COMMIT_WITHIN_NS = 30 * 60 * 10**9
"""A revision not committed within this time is given up: upkeep takes unreferenced ones away after an hour."""
UPDATE_ATTEMPTS = 10


class Writer:
    """Writes to one database, one at a time; writers in other processes are met at the commit.

    A commit counts once it is in the current generation: one that came too late for a change of generations is made
    again in the new one.
    """

    def __init__(self, live: LiveTables, upkeep: Upkeep) -> None:
        self._live = live
        self._upkeep = upkeep
        self._lock = asyncio.Lock()
        self._name = live.ref.name

    async def write(self, documents: Sequence[DocumentWrite]) -> list[Document]:
        """Store a batch in one commit; of documents that share a key the last is stored."""
        if not documents:
            return []
        vectors = await self._vectors(documents)
        keys = batch_keys(documents)
        batch = dict(zip(keys, zip(documents, vectors, strict=True), strict=True))

        async def commit(tables: Tables) -> pa.Table:
            condition = holders_condition(keys, documents)
            existing = await rows_of(tables, condition, ["key", "id", "created_at", "revision"])
            placed = list(place(batch, existing, database=self._name).values())
            stored = await self._parts(tables, placed)
            await self._merge(tables, placed, stored)
            self._upkeep.note_superseded(row["revision"] for row in existing)
            return stored

        stored = await self.counted(commit)
        by_key = {row["key"]: document_from_row(row) for row in stored.to_pylist()}
        return [by_key[key] for key in keys]

    async def rewrite(self, document: DocumentWrite, *, seen: Document) -> Document | None:
        """Replace a document whose row is still the one that was seen, in one commit; None where it is not.

        It keeps its URI, its id and its creation.
        """
        (vectors,) = await self._vectors([document])

        async def commit(tables: Tables) -> Document | None:
            row = await row_of(tables, seen.id)
            if row is None or row["updated_at"] != seen.updated_at:
                return None
            placed = rewritten(row, document, vectors)
            stored = await self._parts(tables, [placed])
            if not await self._exchange(tables, row, stored, made=placed.revision):
                return None
            self._upkeep.note_superseded([row["revision"]])
            return document_from_row(stored.to_pylist()[0])

        return await self.counted(commit)

    async def update(
        self, document_id: str, *, uri: str | None, title: str | None, metadata: Mapping[str, Any] | None
    ) -> Document | None:
        """Change what is given, in one commit, on whatever revision is current then."""
        changes: dict[str, Any] = {}
        if uri is not None:
            changes |= {"uri": clean_text(uri), "key": document_key(uri=uri, document_id=document_id)}
        if title is not None:
            changes["title"] = clean_text(title)
        if metadata is not None:
            changes["metadata"] = as_json(dict(metadata), f"document '{document_id}'")
        return await self.counted(lambda tables: self._update(tables, document_id, changes))

    async def delete(self, document_id: str) -> bool:
        """Remove the document's row, which is the commit; its parts are garbage from then on."""
        condition = f"id = {quoted(document_id)}"

        async def commit(tables: Tables) -> bool:
            rows = await rows_of(tables, condition, ["revision"])
            if not rows:
                return False
            result = await committed(tables.documents, lambda: tables.documents.delete(condition))
            self._upkeep.note_superseded(row["revision"] for row in rows)
            return bool(result.num_deleted_rows)

        return await self.counted(commit)

    async def counted(self, commit: Callable[[Tables], Awaitable[T]]) -> T:
        """Commit to the current generation, again where it was another by the time that was done."""
        async with self._lock:
            tables, written = await self._live.follow(), None
            try:
                while written is None or written.layout.generation != tables.layout.generation:
                    result, written = await commit(tables), tables
                    tables = await self._live.follow()
            finally:
                self._live.expire()
            await self._upkeep.after_write()
        return result

    async def _vectors(self, documents: Sequence[DocumentWrite]) -> list[Vectors]:
        """The documents' vectors, checked."""
        check = partial(checked_vectors, dimension=self._live.identity.dimension, database=self._name)
        return await anyio.to_thread.run_sync(lambda: list(map(check, documents)))

    async def _update(self, tables: Tables, document_id: str, changes: Mapping[str, Any]) -> Document | None:
        for _ in range(UPDATE_ATTEMPTS):
            old = await row_of(tables, document_id)
            if old is None:
                return None
            row = {**old, **changes, "updated_at": datetime.now(UTC)}
            if not changes or await self._replace(tables, old, row):
                return document_from_row(row if changes else old)
        raise StorageError(  # pragma: no cover - needs ten replacements by another process within ten reads
            f"document '{document_id}' of database '{self._name}' kept changing. Try again.", source=self._name
        )

    async def _parts(self, tables: Tables, batch: list[Placed]) -> pa.Table:
        """Store the parts of documents, which nobody reads yet; gives the documents' rows."""
        schema = await tables.documents.schema()
        documents, parts = await anyio.to_thread.run_sync(_batch_rows, batch, tables, schema)
        await asyncio.gather(*(append(table, rows) for table, rows in parts if rows.num_rows))
        return documents

    async def _merge(self, tables: Tables, batch: list[Placed], rows: pa.Table) -> None:
        """The commit of a batch."""
        old_keys = [placed.old_key for placed in batch if placed.old_key is not None]

        async def merge() -> None:
            check_age(batch[0].revision, self._name)
            merging = upsert(tables.documents)
            if old_keys:
                merging = merging.when_not_matched_by_source_delete(one_of("key", old_keys))
            await merging.execute(rows)

        await committed(tables.documents, merge)

    async def _exchange(
        self, tables: Tables, old: Mapping[str, Any], rows: pa.Table, *, made: str | None = None
    ) -> bool:
        """Put a row in place of one with the same key; False where another process has changed that meanwhile."""
        moment = quoted(old["updated_at"].isoformat())
        same = f"target.revision = {quoted(old['revision'])} AND target.updated_at = timestamp {moment}"

        async def merge() -> bool:
            check_age(made, self._name)
            merging = tables.documents.merge_insert("key").when_matched_update_all(where=same).use_index(False)
            return bool((await merging.execute(rows)).num_updated_rows)

        return await committed(tables.documents, merge)

    async def _replace(self, tables: Tables, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Put a changed row in place of the old one; False where another process has replaced that meanwhile."""
        rows = pa.Table.from_pylist([dict(new)], schema=await tables.documents.schema())
        if new["key"] == old["key"]:
            return await self._exchange(tables, old, rows)
        return await committed(tables.documents, lambda: self._move(tables, old, new, rows))

    async def _move(self, tables: Tables, old: Mapping[str, Any], new: Mapping[str, Any], rows: pa.Table) -> bool:
        """Put a row under another key. What is there is looked at right before: the merge itself cannot."""
        keys = one_of("key", [old["key"], new["key"]])
        there = {row["key"]: row for row in await rows_of(tables, keys, ["key", "revision", "updated_at"])}
        if new["key"] in there:
            raise uri_is_taken(new["uri"], self._name)
        if there.get(old["key"]) != {name: old[name] for name in ("key", "revision", "updated_at")}:
            return False
        merging = upsert(tables.documents).when_not_matched_by_source_delete(f"key = {quoted(old['key'])}")
        await merging.execute(rows)
        return True


async def rows_of(tables: Tables, condition: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """The newest rows of the documents that the condition selects."""
    await tables.documents.checkout_latest()
    query = tables.documents.query().where(condition)
    found = await (query.select(columns) if columns else query).to_arrow()
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


async def row_of(tables: Tables, document_id: str) -> dict[str, Any] | None:
    """The newest row of a document."""
    return next(iter(await rows_of(tables, f"id = {quoted(document_id)}")), None)


def check_age(revision: str | None, database: str) -> None:
    """`StorageError` for a revision that was made too long ago to be committed: upkeep may have begun to remove it."""
    if revision is not None and time.time_ns() - revision_nanoseconds(revision) > COMMIT_WITHIN_NS:
        raise StorageError(
            f"a write to database '{database}' took too long to be committed. Write the documents again.",
            source=database,
        )


def upsert(documents: Any) -> Any:
    """A merge by key that replaces and inserts."""
    # Without the index, always: a scalar index on the key would let two writers both insert it.
    merging = documents.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
    return merging.use_index(False)


async def append(table: Any, rows: pa.Table) -> None:
    """Add rows in one commit."""
    await committed(table, lambda: table.add(rows))


def _batch_rows(batch: list[Placed], tables: Tables, schema: pa.Schema) -> tuple[pa.Table, list[tuple[Any, pa.Table]]]:
    parts = [
        (tables.chunks, chunk_rows(batch, tables.dimension)),
        (tables.items, item_rows(batch)),
        (tables.pictures, picture_rows(batch)),
    ]
    return document_rows(batch, schema), parts
