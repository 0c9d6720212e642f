"""The documents of a database as they stand, without their content, in memory."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from haiku.rag.models import Document
from haiku.rag.storage.lancedb.metadata import Metadata
from haiku.rag.storage.lancedb.schema import STATE_COLUMNS


class DocumentState:
    """One version of the documents table, by creation, then id; never changed once it is made.

    `rows_by_revision` holds the live revisions: chunks, items and pictures of any other are not shown. `earlier` is a
    state of the same database from before: what it has worked out and still holds is taken over.
    """

    def __init__(self, table: pa.Table, *, version: int, uid: bytes, earlier: "DocumentState | None" = None) -> None:
        self.table = table.select(STATE_COLUMNS).sort_by([("created_at", "ascending"), ("id", "ascending")])
        self.table = self.table.combine_chunks()
        self.version = version
        self.uid = uid
        self.ids: list[str] = self.table["id"].to_pylist()
        self.revisions: list[str] = self.table["revision"].to_pylist()
        self.chunk_count: int = pc.sum(self.table["chunk_count"], min_count=0).as_py()
        self.metadata: Metadata = Metadata(self.table["metadata"], earlier=earlier.metadata if earlier else None)
        self.rows_by_id = {identifier: row for row, identifier in enumerate(self.ids)}
        self.rows_by_revision = {revision: row for row, revision in enumerate(self.revisions)}

    def __len__(self) -> int:
        return len(self.ids)

    def first(self, column: str, value: str) -> int | None:
        """The place of the first document with this value in a column."""
        place = pc.index(self.table[column], value).as_py()
        return None if place < 0 else int(place)

    def rows(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """The rows at these places, in this order."""
        rows: list[dict[str, Any]] = self.table.take(pa.array(indices, pa.int64())).to_pylist()
        return rows


def document_from_row(row: dict[str, Any]) -> Document:
    """A stored row as a document, with its content where the row has it."""
    return Document(
        id=row["id"],
        uri=row["uri"],
        title=row["title"],
        metadata=json.loads(row["metadata"]),
        content=row.get("content"),
        content_hash=row["content_hash"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        chunk_count=row["chunk_count"],
    )
