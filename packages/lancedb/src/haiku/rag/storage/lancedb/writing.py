"""Writes: the parts first under a fresh revision, then one merge of the documents' rows, which is the commit."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio
import pyarrow as pa

from haiku.rag.contracts import DocumentWrite
from haiku.rag.errors import StorageError
from haiku.rag.models import Document
from haiku.rag.models.text import clean_text
from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.live import LiveTables
from haiku.rag.storage.lancedb.placing import batch_keys, holders_condition, place, uri_is_taken
from haiku.rag.storage.lancedb.rows import (
    Placed,
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

COMMIT_WITHIN_NS = 30 * 60 * 10**9
"""A revision not committed within this time is given up: upkeep takes unreferenced ones away after an hour."""
UPDATE_ATTEMPTS = 10


class Writer:
    """Writes to one database, one at a time; writers in other processes are met at the commit."""

    def __init__(self, live: LiveTables, upkeep: Upkeep) -> None:
        self._live = live
        self._upkeep = upkeep
        self._lock = asyncio.Lock()
        self._name = live.ref.name

    async def write(self, documents: Sequence[DocumentWrite]) -> list[Document]:
        """Store a batch in one commit; of documents that share a key the last is stored."""
        if not documents:
            return []
        dimension = self._live.tables.dimension
        vectors = [checked_vectors(document, dimension, self._name) for document in documents]
        keys = batch_keys(documents)
        batch = dict(zip(keys, zip(documents, vectors, strict=True), strict=True))
        async with self._lock:
            existing = await self._rows(holders_condition(keys, documents), ["key", "id", "created_at", "revision"])
            placed = place(batch, existing, database=self._name)
            stored = await self._store(list(placed.values()))
            await self._settled([row["revision"] for row in existing])
        by_key = {row["key"]: document_from_row(row) for row in stored.to_pylist()}
        return [by_key[key] for key in keys]

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
        async with self._lock:
            for _ in range(UPDATE_ATTEMPTS):
                rows = await self._rows(f"id = {quoted(document_id)}")
                if not rows:
                    return None
                row = {**rows[0], **changes, "updated_at": datetime.now(UTC)}
                if not changes or await self._replace(rows[0], row):
                    await self._settled([])
                    return document_from_row(row if changes else rows[0])
        raise StorageError(  # pragma: no cover - needs ten replacements by another process within ten reads
            f"document '{document_id}' of database '{self._name}' kept changing. Try again.", source=self._name
        )

    async def delete(self, document_id: str) -> bool:
        """Remove the document's row, which is the commit; its parts are garbage from then on."""
        condition = f"id = {quoted(document_id)}"
        async with self._lock:
            rows = await self._rows(condition, ["revision"])
            if not rows:
                return False
            documents = self._live.tables.documents
            result = await committed(documents, lambda: documents.delete(condition))
            await self._settled([row["revision"] for row in rows])
        return bool(result.num_deleted_rows)

    async def _rows(self, condition: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
        documents = self._live.tables.documents
        await documents.checkout_latest()
        query = documents.query().where(condition)
        found = await (query.select(columns) if columns else query).to_arrow()
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows

    async def _store(self, batch: list[Placed]) -> pa.Table:
        tables = self._live.tables
        documents, parts = await anyio.to_thread.run_sync(_batch_rows, batch, tables, await tables.documents.schema())
        await asyncio.gather(*(_append(table, rows) for table, rows in parts if rows.num_rows))
        oldest = revision_nanoseconds(batch[0].revision)
        old_keys = [placed.old_key for placed in batch if placed.old_key is not None]

        async def merge() -> None:
            if time.time_ns() - oldest > COMMIT_WITHIN_NS:
                raise StorageError(
                    f"a write to database '{self._name}' took too long to be committed. Write the documents again.",
                    source=self._name,
                )
            merging = _upsert(tables.documents)
            if old_keys:
                merging = merging.when_not_matched_by_source_delete(one_of("key", old_keys))
            await merging.execute(documents)

        try:
            await committed(tables.documents, merge)
        finally:
            self._live.expire()
        return documents

    async def _replace(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Put a changed row in place of the old one; False where another process has replaced that meanwhile."""
        documents = self._live.tables.documents
        rows = pa.Table.from_pylist([dict(new)], schema=await documents.schema())
        if new["key"] == old["key"]:
            same = f"target.revision = {quoted(old['revision'])}"
            merging = documents.merge_insert("key").when_matched_update_all(where=same).use_index(False)
            result = await committed(documents, lambda: merging.execute(rows))
            return bool(result.num_updated_rows)
        if await self._rows(f"key = {quoted(new['key'])}", ["id"]):
            raise uri_is_taken(new["uri"], self._name)
        merging = _upsert(documents).when_not_matched_by_source_delete(f"key = {quoted(old['key'])}")
        await committed(documents, lambda: merging.execute(rows))
        return True

    async def _settled(self, superseded: list[str]) -> None:
        self._live.expire()
        self._upkeep.note_superseded(superseded)
        await self._upkeep.after_write()


def _upsert(documents: Any) -> Any:
    # Without the index, always: a scalar index on the key would let two writers both insert it.
    merging = documents.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
    return merging.use_index(False)


async def _append(table: Any, rows: pa.Table) -> None:
    await committed(table, lambda: table.add(rows))


def _batch_rows(batch: list[Placed], tables: Tables, schema: pa.Schema) -> tuple[pa.Table, list[tuple[Any, pa.Table]]]:
    parts = [
        (tables.chunks, chunk_rows(batch, tables.dimension)),
        (tables.items, item_rows(batch)),
        (tables.pictures, picture_rows(batch)),
    ]
    return document_rows(batch, schema), parts
