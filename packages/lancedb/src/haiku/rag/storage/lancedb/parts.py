"""A stored document with all its parts, as it would be written again."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from haiku.rag.contracts import DocumentWrite
from haiku.rag.models import Chunk, Document
from haiku.rag.storage.lancedb.reading import items_of
from haiku.rag.storage.lancedb.rows import PAGE, Vectors
from haiku.rag.storage.lancedb.schema import CHUNK_COLUMNS
from haiku.rag.storage.lancedb.state import DocumentState, document_from_row
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.text import quoted


class OutrunError(LookupError):
    """A write has moved the handle on the documents past the state that was read: to be read again."""


async def parts_of(tables: Tables, state: DocumentState, document_id: str) -> DocumentWrite | None:
    """The document, with its vectors and its moments; None where there is none.

    `OutrunError` where the row is another one by now.
    """
    place = state.rows_by_id.get(document_id)
    if place is None:
        return None
    of_revision = f"revision = {quoted(state.revisions[place])}"
    rows = (await tables.documents.query().where(of_revision).to_arrow()).to_pylist()
    if not rows:
        raise OutrunError(document_id)
    chunks = await tables.chunks.query().where(of_revision).select([*CHUNK_COLUMNS, "vector"]).to_arrow()
    images = await _images(tables, of_revision)
    return _assembled(
        document_from_row(rows[0]),
        chunks=_chunks(chunks),
        vectors=_vectors(chunks, tables.dimension),
        items=await items_of(tables, state.revisions[place]),
        images=images,
    )


def _assembled(document: Document, *, images: Mapping[str, bytes], **parts: Any) -> DocumentWrite:
    return DocumentWrite(
        id=document.id,
        uri=document.uri,
        title=document.title,
        metadata=document.metadata,
        content=document.content or "",
        content_hash=document.content_hash,
        pictures={ref: data for ref, data in images.items() if not ref.startswith(PAGE)},
        page_images={int(ref.removeprefix(PAGE)): data for ref, data in images.items() if ref.startswith(PAGE)},
        created_at=document.created_at,
        updated_at=document.updated_at,
        **parts,
    )


async def _images(tables: Tables, condition: str) -> dict[str, bytes]:
    found = await tables.pictures.query().where(condition).select(["ref", "data"]).to_arrow()
    return dict(zip(found["ref"].to_pylist(), found["data"].to_pylist(), strict=True))


def _chunks(found: pa.Table) -> list[Chunk]:
    rows = found.select(CHUNK_COLUMNS).sort_by("position").to_pylist()
    return [
        Chunk(id=row["id"], content=row["content"], order=row["position"], **json.loads(row["details"])) for row in rows
    ]


def _vectors(found: pa.Table, dimension: int) -> Vectors:
    column = found.select(["position", "vector"]).sort_by("position")["vector"].combine_chunks()
    rows: Vectors = np.array(column.flatten(), np.float32).reshape(-1, dimension)
    return rows
