"""From documents to rows and back."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import numpy as np

from acme_sqlstore.searching import plain
from haiku.rag.contracts import DocumentWrite
from haiku.rag.errors import DocumentConflictError
from haiku.rag.models import Chunk, Document, DocumentItem


def put(connection: sqlite3.Connection, home: str, write: DocumentWrite, moment: datetime) -> Document:
    """Store a document in place of the one with its URI or id."""
    known = connection.execute(
        "SELECT id, created_at FROM documents WHERE home = ? AND (uri = ? OR id = ?) ORDER BY uri IS NOT ?",
        (home, write.uri, write.id, write.uri),
    ).fetchone()
    document = Document(
        id=known[0] if known else write.id or str(uuid4()),
        uri=write.uri,
        title=write.title,
        metadata=dict(write.metadata),
        content=write.content,
        content_hash=write.content_hash,
        created_at=write.created_at or (datetime.fromisoformat(known[1]) if known else moment),
        updated_at=write.updated_at or moment,
        chunk_count=len(write.chunks),
    )
    remove(connection, home, document.id)
    key = _insert(connection, home, document, json.dumps([item.model_dump() for item in write.items]))
    _insert_chunks(connection, key, write)
    pictures = {**{f"page/{page}": image for page, image in write.page_images.items()}, **write.pictures}
    connection.executemany("INSERT INTO pictures VALUES (?, ?, ?)", [(key, *pair) for pair in pictures.items()])
    return document


def _insert(connection: sqlite3.Connection, home: str, document: Document, items: str) -> int:
    row = (home, document.id, document.uri, document.title, document.created_at.isoformat())
    cursor = connection.execute(
        "INSERT INTO documents (home, id, uri, title, created_at, body, items) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*row, document.model_dump_json(), items),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _insert_chunks(connection: sqlite3.Connection, key: int, write: DocumentWrite) -> None:
    vectors = np.zeros((0, 0), dtype=np.float32) if write.vectors is None else write.vectors
    for chunk, vector in zip(write.chunks, vectors, strict=True):
        body = chunk.model_dump_json(exclude={"embedding"})
        blob = np.asarray(vector, dtype=np.float32).tobytes()
        cursor = connection.execute(
            "INSERT INTO chunks (document, id, body, vector) VALUES (?, ?, ?, ?)", (key, chunk.id, body, blob)
        )
        connection.execute(
            "INSERT INTO words (rowid, text) VALUES (?, ?)", (cursor.lastrowid, plain(chunk.contextualized()))
        )


def remove(connection: sqlite3.Connection, home: str, document_id: str) -> bool:
    """Delete a document with its parts."""
    row = connection.execute("SELECT key FROM documents WHERE home = ? AND id = ?", (home, document_id)).fetchone()
    if row is None:
        return False
    connection.execute("DELETE FROM words WHERE rowid IN (SELECT key FROM chunks WHERE document = ?)", row)
    connection.execute("DELETE FROM chunks WHERE document = ?", row)
    connection.execute("DELETE FROM pictures WHERE document = ?", row)
    connection.execute("DELETE FROM documents WHERE key = ?", row)
    return True


def change(connection: sqlite3.Connection, home: str, document_id: str, given: Mapping[str, Any]) -> Document | None:
    """Change a document's row."""
    row = connection.execute("SELECT body FROM documents WHERE home = ? AND id = ?", (home, document_id)).fetchone()
    if row is None:
        return None
    changes = {key: value for key, value in given.items() if value is not None}
    taken = "SELECT 1 FROM documents WHERE home = ? AND uri = ? AND id <> ?"
    if connection.execute(taken, (home, given["uri"], document_id)).fetchone():
        raise DocumentConflictError(f"another document of database '{home}' has the URI '{given['uri']}'.")
    stored = Document.model_validate_json(row[0])
    document = stored.model_copy(update={**changes, "updated_at": datetime.now(UTC)})
    connection.execute(
        "UPDATE documents SET uri = ?, title = ?, body = ? WHERE home = ? AND id = ?",
        (document.uri, document.title, document.model_dump_json(), home, document_id),
    )
    return document


def chunks(connection: sqlite3.Connection, home: str, ids: Sequence[str]) -> list[Chunk]:
    """The chunks that are there, in the order asked."""
    rows = connection.execute(
        "SELECT c.id, c.body, d.body FROM chunks c JOIN documents d ON d.key = c.document "
        "WHERE d.home = ? AND c.id IN (SELECT value FROM json_each(?))",
        (home, json.dumps(list(ids))),
    )
    found = {
        key: _placed(Chunk.model_validate_json(body), Document.model_validate_json(owner)) for key, body, owner in rows
    }
    return [found[key] for key in ids if key in found]


def _placed(chunk: Chunk, owner: Document) -> Chunk:
    placed = {
        "document_id": owner.id,
        "document_uri": owner.uri,
        "document_title": owner.title,
        "document_meta": owner.metadata,
    }
    return chunk.model_copy(update=placed)


def items(connection: sqlite3.Connection, home: str, document_id: str) -> list[DocumentItem]:
    """The items in order."""
    row = connection.execute("SELECT items FROM documents WHERE home = ? AND id = ?", (home, document_id)).fetchone()
    return [DocumentItem.model_validate(item) for item in json.loads(row[0])] if row else []
