"""Reads of documents and their parts, on one state of the database."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from haiku.rag.models import Chunk, Document, DocumentItem
from haiku.rag.storage.lancedb.fetching import fetched
from haiku.rag.storage.lancedb.schema import CHUNK_COLUMNS
from haiku.rag.storage.lancedb.state import DocumentState, document_from_row
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.text import one_of, quoted

DOCUMENT_FACTS = ["id", "uri", "title", "metadata"]


async def documents_with_content(tables: Tables, ids: Sequence[str]) -> list[Document]:
    """The documents with these ids, whole and in this order; those that are gone are left out."""
    if not ids:
        return []
    rows = (await tables.documents.query().where(one_of("id", ids)).to_arrow()).to_pylist()
    by_id = {row["id"]: row for row in rows}
    return [document_from_row(by_id[identifier]) for identifier in ids if identifier in by_id]


async def items_of(tables: Tables, revision: str) -> list[DocumentItem]:
    """The items of a revision in reading order."""
    found = await tables.items.query().where(f"revision = {quoted(revision)}").to_arrow()
    return [
        DocumentItem(
            ref=row["ref"],
            label=row["label"],
            text=row["text"],
            level=row["level"],
            page=row["page"],
            box=None if row["box"] is None else json.loads(row["box"]),
        )
        for row in found.sort_by("position").to_pylist()
    ]


async def picture_of(tables: Tables, revision: str, ref: str) -> bytes | None:
    """The bytes of a picture or page image of a revision."""
    where = f"revision = {quoted(revision)} AND ref = {quoted(ref)}"
    found = await tables.pictures.query().where(where).select(["data"]).limit(1).to_arrow()
    data: bytes | None = found["data"][0].as_py() if found.num_rows else None
    return data


async def chunks_of(
    tables: Tables,
    state: DocumentState,
    chunk_ids: Sequence[str],
    *,
    row_ids: list[int] | None = None,
    held: pa.Table | None = None,
) -> list[Chunk]:
    """The live chunks with these ids, in this order, each with its document's facts.

    `row_ids` says where they were in the table when they were looked up, None where that is not known, and `held` is
    what is in memory of these rows. A document that was rewritten since may have the same chunks in other rows.
    """
    if not chunk_ids:
        return []
    by_id = {} if held is None else _live_rows(held, state)
    if held is None and row_ids is not None:
        query = tables.chunks.take_row_ids(row_ids).select(CHUNK_COLUMNS)
        by_id = _live_rows(await fetched(query, at_most=len(row_ids)), state)
    if not by_id.keys() >= set(chunk_ids):
        query = tables.chunks.query().where(one_of("id", dict.fromkeys(chunk_ids))).select(CHUNK_COLUMNS)
        by_id = _live_rows(await fetched(query), state)
    wanted = [chunk for chunk in chunk_ids if chunk in by_id]
    places = [state.rows_by_revision[by_id[chunk]["revision"]] for chunk in wanted]
    documents = state.table.select(DOCUMENT_FACTS).take(pa.array(places, pa.int64())).to_pylist()
    return [_chunk(by_id[chunk], document) for chunk, document in zip(wanted, documents, strict=True)]


def _live_rows(found: pa.Table, state: DocumentState) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in found.to_pylist() if row["revision"] in state.rows_by_revision}


def _chunk(row: dict[str, Any], document: dict[str, Any]) -> Chunk:
    return Chunk(
        id=row["id"],
        content=row["content"],
        order=row["position"],
        document_id=document["id"],
        document_uri=document["uri"],
        document_title=document["title"],
        document_meta=json.loads(document["metadata"]),
        **json.loads(row["details"]),
    )
