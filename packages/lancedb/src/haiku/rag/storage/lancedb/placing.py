"""Where the documents of a batch go: the rows they replace, or new ones."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from haiku.rag.contracts import DocumentWrite
from haiku.rag.errors import DocumentConflictError
from haiku.rag.models.text import clean_text
from haiku.rag.storage.lancedb.rows import Placed, Vectors, document_key, new_revision
from haiku.rag.storage.lancedb.text import one_of

Row = Mapping[str, Any]


def batch_keys(documents: Sequence[DocumentWrite]) -> list[str]:
    """A key for each document; of those that share one, the last is stored."""
    return [
        document_key(uri=document.uri, document_id=clean_text(document.id) if document.id else str(uuid4()))
        for document in documents
    ]


def holders_condition(keys: Sequence[str], documents: Sequence[DocumentWrite]) -> str:
    """The condition that finds every row that the batch may replace."""
    ids = [document.id for document in documents if document.id]
    by_key = one_of("key", dict.fromkeys(keys))
    return f"{by_key} OR {one_of('id', dict.fromkeys(ids))}" if ids else by_key


def place(
    batch: Mapping[str, tuple[DocumentWrite, Vectors]], existing: Sequence[Row], *, database: str
) -> dict[str, Placed]:
    """Give every document its id, its revision and its moments; a replaced one keeps its id and its creation.

    `batch` maps keys to documents. Creations within a batch are a microsecond apart, so that they keep its order.
    Moments that a document brings are kept.
    """
    by_key = {row["key"]: row for row in existing}
    by_id = {row["id"]: row for row in existing}
    now = datetime.now(UTC)
    placed = {}
    for number, (key, (document, vectors)) in enumerate(batch.items()):
        row = _replaced(key, document, by_key, by_id, database)
        moment = now + timedelta(microseconds=number)
        placed[key] = Placed(
            source=document,
            vectors=vectors,
            key=key,
            id=row["id"] if row else _new_id(key, document),
            revision=new_revision(time.time_ns()),
            created_at=document.created_at or (row["created_at"] if row else moment),
            updated_at=document.updated_at or moment,
            old_key=row["key"] if row and row["key"] != key else None,
        )
    _refuse_shared_ids(placed, database)
    return placed


def rewritten(row: Row, document: DocumentWrite, vectors: Vectors) -> Placed:
    """A document in the place of a stored row: it keeps the key, the URI, the id and the creation."""
    return Placed(
        source=replace(document, uri=row["uri"]),
        vectors=vectors,
        key=row["key"],
        id=row["id"],
        revision=new_revision(time.time_ns()),
        created_at=row["created_at"],
        updated_at=document.updated_at or datetime.now(UTC),
    )


def _replaced(
    key: str, document: DocumentWrite, by_key: Mapping[str, Row], by_id: Mapping[str, Row], database: str
) -> Row | None:
    holder = by_key.get(key)
    own = by_id.get(clean_text(document.id)) if document.id else None
    if holder and own and holder["id"] != own["id"]:
        raise uri_is_taken(document.uri, database)
    return holder or own


def _new_id(key: str, document: DocumentWrite) -> str:
    if document.id:
        return clean_text(document.id)
    return str(uuid4()) if document.uri is not None else key.removeprefix("id:")


def uri_is_taken(uri: str | None, database: str) -> DocumentConflictError:
    """The error for a URI that another document holds."""
    return DocumentConflictError(
        f"another document of database '{database}' has the URI '{uri}'. Delete it first, or choose another URI.",
        source=database,
    )


def _refuse_shared_ids(placed: Mapping[str, Placed], database: str) -> None:
    ids = [entry.id for entry in placed.values()]
    if len(set(ids)) == len(ids):
        return
    shared = next(identifier for identifier in ids if ids.count(identifier) > 1)
    raise DocumentConflictError(
        f"two documents of one batch for database '{database}' have the id '{shared}'. Give each its own.",
        source=database,
    )
