"""Documents to be written, as the rows of the tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts import DocumentWrite
from haiku.rag.errors import EmbeddingError, StorageError
from haiku.rag.models import Chunk
from haiku.rag.models.text import clean_text
from haiku.rag.storage.lancedb.schema import ITEMS_SCHEMA, PICTURES_SCHEMA, chunks_schema
from haiku.rag.storage.lancedb.text import identifiers, searchable

Vectors = NDArray[np.float32]
PAGE = "page/"
"""A page image's ref is this and the page's number."""


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A document to be written and the place it takes: its id, its revision and its moments.

    `old_key` is the key of the row that gives way because the document's key changes.
    """

    source: DocumentWrite
    vectors: Vectors
    key: str
    id: str
    revision: str
    created_at: datetime
    updated_at: datetime
    old_key: str | None = None


def document_key(*, uri: str | None, document_id: str) -> str:
    """What makes a document one: its URI, or its id where it has none."""
    return f"id:{document_id}" if uri is None else f"uri:{clean_text(uri)}"


def new_revision(nanoseconds: int) -> str:
    """A revision's name: when it was made, so that names sort by time, and a random part."""
    return f"{nanoseconds:020d}-{uuid4().hex[:12]}"


def revision_nanoseconds(revision: str) -> int:
    """When a revision was made."""
    return int(revision.partition("-")[0])


def checked_vectors(document: DocumentWrite, dimension: int, database: str) -> Vectors:
    """The vectors of a document's chunks, of shape (chunks, dimension) and finite, or `EmbeddingError`."""
    name = document.uri or document.title or document.id or "without a URI"
    vectors = document.vectors
    if vectors is None:
        if any(chunk.embedding is None for chunk in document.chunks):
            raise EmbeddingError(
                f"document '{name}' has chunks without an embedding. Embed them first.", source=database
            )
        given = [chunk.embedding for chunk in document.chunks]
        vectors = np.array(given, np.float32) if given else np.empty((0, dimension), np.float32)
    if vectors.shape != (len(document.chunks), dimension):
        raise EmbeddingError(
            f"document '{name}' has vectors of shape {vectors.shape} for {len(document.chunks)} chunks; "
            f"database '{database}' holds {dimension} dimensions.",
            source=database,
        )
    vectors = np.ascontiguousarray(vectors, np.float32)
    if not np.isfinite(vectors).all():
        raise EmbeddingError(
            f"document '{name}' has a vector that is not finite. Embed it again, or leave the passage out.",
            source=database,
        )
    return vectors


def as_json(value: Any, name: str) -> str:
    """JSON text, or `StorageError` for what JSON cannot hold."""
    try:
        return clean_text(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        reason = str(error)
    raise StorageError(f"the metadata of {name} cannot be stored as JSON: {reason}.")


def document_rows(batch: Sequence[Placed], schema: pa.Schema) -> pa.Table:
    """The rows of the documents table."""
    return pa.Table.from_pylist([_document_row(placed) for placed in batch], schema=schema)


def _document_row(placed: Placed) -> dict[str, Any]:
    source = placed.source
    return {
        "key": placed.key,
        "id": placed.id,
        "revision": placed.revision,
        "uri": _clean(source.uri),
        "title": _clean(source.title),
        "metadata": as_json(dict(source.metadata), f"document '{source.uri or placed.id}'"),
        "content": clean_text(source.content),
        "content_hash": source.content_hash,
        "created_at": placed.created_at,
        "updated_at": placed.updated_at,
        "chunk_count": len(source.chunks),
    }


def chunk_rows(batch: Sequence[Placed], dimension: int) -> pa.Table:
    """The rows of the chunks table."""
    schema = chunks_schema(dimension)
    columns: dict[str, list[Any]] = {name: [] for name in schema.names if name != "vector"}
    for placed in batch:
        for position, chunk in enumerate(placed.source.chunks):
            columns["id"].append(chunk.id or str(uuid4()))
            columns["document_id"].append(placed.id)
            columns["revision"].append(placed.revision)
            columns["position"].append(position)
            columns["content"].append(clean_text(chunk.content))
            columns["text"].append(searchable(chunk.contextualized()))
            columns["identifiers"].append(identifiers(chunk.contextualized()))
            columns["details"].append(_details(chunk, placed))
    vectors = np.concatenate([placed.vectors for placed in batch])
    arrays = [pa.array(values, schema.field(name).type) for name, values in columns.items()]
    arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel(), pa.float32()), dimension))
    return pa.Table.from_arrays(arrays, schema=schema)


def _details(chunk: Chunk, placed: Placed) -> str:
    details = chunk.model_dump(include={"headings", "page_numbers", "labels", "doc_item_refs", "metadata"})
    return as_json(details, f"a chunk of document '{placed.source.uri or placed.id}'")


def item_rows(batch: Sequence[Placed]) -> pa.Table:
    """The rows of the items table."""
    rows = [
        {
            "document_id": placed.id,
            "revision": placed.revision,
            "position": position,
            "ref": clean_text(item.ref),
            "label": clean_text(item.label),
            "text": clean_text(item.text),
            "level": item.level,
            "page": item.page,
            "box": None if item.box is None else json.dumps(item.box),
        }
        for placed in batch
        for position, item in enumerate(placed.source.items)
    ]
    return pa.Table.from_pylist(rows, schema=ITEMS_SCHEMA)


def picture_rows(batch: Sequence[Placed]) -> pa.Table:
    """The rows of the pictures table: pictures by their item's ref, page images by `page/N`."""
    rows = [
        {"document_id": placed.id, "revision": placed.revision, "ref": clean_text(ref), "data": data}
        for placed in batch
        for ref, data in _pictures(placed.source).items()
    ]
    return pa.Table.from_pylist(rows, schema=PICTURES_SCHEMA)


def _pictures(source: DocumentWrite) -> Mapping[str, bytes]:
    return {**source.pictures, **{f"{PAGE}{number}": data for number, data in source.page_images.items()}}


def _clean(text: str | None) -> str | None:
    return None if text is None else clean_text(text)
