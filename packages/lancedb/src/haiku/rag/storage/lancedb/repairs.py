"""Putting right what is safe to put right: whatever is stored twice is stored once afterwards."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from haiku.rag.contracts import DocumentWrite
from haiku.rag.models import Document
from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.text import quoted
from haiku.rag.storage.lancedb.writing import Writer

Parts = Callable[[str], Awaitable[DocumentWrite | None]]


async def keep_newest(writer: Writer, key: str, document_id: str) -> None:
    """Of the rows of one document keep the one that was written last, as if the others had been replaced by it."""

    async def commit(tables: Tables) -> None:
        await committed(tables.documents, partial(_delete_older, tables, key, document_id))

    await writer.counted(commit)


async def _delete_older(tables: Tables, key: str, document_id: str) -> None:
    condition = f"key = {quoted(key)} AND id = {quoted(document_id)}"
    await tables.documents.checkout_latest()
    found = await tables.documents.query().where(condition).select(["revision", "updated_at"]).with_row_id().to_arrow()
    rows: list[dict[str, Any]] = sorted(found.to_pylist(), key=lambda row: (row["updated_at"], row["revision"]))
    for row in rows[:-1]:
        # By its place as well, for rows that are the same; another process that moves them makes this a conflict.
        which = f"revision = {quoted(row['revision'])} AND _rowid = {row['_rowid']}"
        await tables.documents.delete(f"{condition} AND {which}")


async def store_once(writer: Writer, parts: Parts, document_id: str) -> None:
    """Write a document again without the passages that are there twice; nothing where it has changed meanwhile."""
    found = await parts(document_id)
    if found is not None and found.created_at is not None and found.updated_at is not None:
        seen = Document(id=document_id, created_at=found.created_at, updated_at=found.updated_at)
        await writer.rewrite(_once(found), seen=seen)


def _once(document: DocumentWrite) -> DocumentWrite:
    places = _first_places([chunk.id for chunk in document.chunks])
    assert document.vectors is not None
    return replace(document, chunks=[document.chunks[place] for place in places], vectors=document.vectors[places])


def _first_places(ids: Sequence[str | None]) -> list[int]:
    first: dict[str | None, int] = {}
    for place, identifier in enumerate(ids):
        first.setdefault(identifier, place)
    return list(first.values())
