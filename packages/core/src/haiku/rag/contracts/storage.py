"""The contract of a storage engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel

from haiku.rag.contracts.filters import Filter
from haiku.rag.models import Chunk, Document, DocumentItem, EmbeddingIdentity, SearchType, UpkeepReport


@dataclass(frozen=True, kw_only=True)
class DatabaseRef:
    """A database by name, and where it is.

    `location` is an absolute local path or a URI with a scheme; it never leaves the configuration. `storage` names
    the engine, and `searches_many` says that it answers for several of its databases in one round trip. `tag` is the
    state that is read, None for the current one. `given` says that the caller typed the location, who may then be
    told it in errors.
    """

    name: str
    location: str = field(repr=False)
    storage: str
    tag: str | None = None
    given: bool = False
    searches_many: bool = False

    @property
    def path(self) -> Path | None:
        """The local path, None for a URI."""
        return None if "://" in self.location else Path(self.location)


class OpenMode(StrEnum):
    """How a database is opened. Only `CREATE` makes one where there is none; one that exists is opened as it is."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"


@dataclass(frozen=True, kw_only=True)
class CandidateQuery:
    """What one database is asked for.

    `vector` is the query's (float32, of the database's dimension), None for full text; `text` the query's text, None
    for a vector search. `depth` bounds each leg. `filter` selects documents, as structure or in the engine's own
    text form. `with_shares` asks for `keyword_share`, which an engine may have to look up statistics for.
    """

    search_type: SearchType
    depth: int
    text: str | None = None
    vector: NDArray[np.float32] | None = None
    filter: str | Filter | None = None
    with_vectors: bool = False
    with_shares: bool = False


@dataclass(frozen=True, kw_only=True)
class DocumentWrite:
    """A document with all its parts, ready to store. Every chunk has an id, in `order` from 0.

    `vectors` holds the chunks' embeddings, one row a chunk; what a chunk itself carries as `embedding` is not read.

    `id` is the document's when it is already known, else the store gives a random one (UUID4). `pictures` maps item
    refs, `page_images` page numbers to encoded images. `created_at` and `updated_at` are for copies of a stored
    document: without them a new document gets the present, and a replaced one keeps its creation.
    """

    id: str | None = None
    uri: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    content: str = ""
    content_hash: str | None = None
    items: Sequence[DocumentItem] = ()
    chunks: Sequence[Chunk] = ()
    vectors: NDArray[np.float32] | None = None
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    page_images: Mapping[int, bytes] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


class DatabaseInfo(BaseModel):
    """What a database says of itself.

    `language` is the one that full text is stemmed by, None for none; `upkeep` is the outcome of the last upkeep.
    """

    storage: str
    schema_version: int
    documents: int
    chunks: int
    identity: EmbeddingIdentity | None
    size_bytes: int | None = None
    updated_at: datetime | None = None
    indexes: dict[str, str] = {}
    language: str | None = None
    upkeep: UpkeepReport | None = None


class Database(Protocol):
    """One open database.

    Reads never show half a document: its chunks and items are those of the revision that its row names. A read in
    another process sees a commit within the engine's read-consistency interval. Reading never writes, creates or
    upgrades anything. Where a document is not there, the answer is None or an empty list, never an error.
    """

    @property
    def identity(self) -> EmbeddingIdentity | None:
        """The embedding it was created for; None where it records none."""

    async def search(self, query: CandidateQuery) -> pa.Table:
        """Candidates as a table of `CANDIDATE_SCHEMA`. A query without a letter or digit finds nothing by text."""

    async def chunks_by_id(self, chunk_ids: Sequence[str]) -> list[Chunk]:
        """The chunks, with their documents' uri, title and metadata, in the order asked; missing ones are left out."""

    async def list_documents(
        self, *, limit: int | None, offset: int, filter: str | Filter | None, include_content: bool
    ) -> list[Document]:
        """Documents by creation, then id."""

    async def count_documents(self, *, filter: str | Filter | None) -> int:
        """How many documents the filter selects, all of them without one."""

    async def document_by_id(self, document_id: str) -> Document | None:
        """One document with its content."""

    async def document_by_uri(self, uri: str) -> Document | None:
        """One document with its content."""

    async def document_by_title(self, title: str) -> Document | None:
        """The first document, by creation, with exactly this title, with its content."""

    async def items(self, document_id: str) -> list[DocumentItem]:
        """A document's items in reading order."""

    async def picture(self, document_id: str, ref: str) -> bytes | None:
        """A picture's bytes by its item's ref, a page image's by `page/N`."""

    async def write(self, documents: Sequence[DocumentWrite]) -> list[Document]:
        """Store a batch in one commit; a document whose URI (or id) is there already is replaced.

        It keeps its id and the time of its creation.

        Of two writers of one URI the last to commit wins, whole. Returns the documents as stored, in order.
        """

    async def update(
        self, document_id: str, *, uri: str | None, title: str | None, metadata: Mapping[str, Any] | None
    ) -> Document | None:
        """Change what is not None beside the content; the document as it is then, None where there is none.

        `DocumentConflictError` where another document has the URI.
        """

    async def delete(self, document_id: str) -> bool:
        """Remove a document with all its parts; False where there was none."""

    async def info(self) -> DatabaseInfo:
        """Sizes and versions."""

    async def close(self) -> None:
        """Release what it holds, within 5 seconds. Safe to call twice."""


class Storage(Protocol):
    """An engine that opens databases."""

    async def open(self, ref: DatabaseRef, *, mode: OpenMode, identity: EmbeddingIdentity | None) -> Database:
        """Open the database at `ref`. `identity` is recorded when one is created.

        `MissingDatabaseError` where there is none and the mode does not create; `MigrationRequiredError`, `TagError`
        and `ReadOnlyError` as they say. Cancelling leaves nothing half open.
        """

    async def close(self) -> None:
        """Release what the databases share. Safe to call twice."""


class FederatedStorage(Storage, Protocol):
    """An engine that answers for several of its databases in one round trip; its record says `searches_many=True`."""

    async def search_many(self, databases: Sequence[Database], query: CandidateQuery) -> Sequence[pa.Table | Exception]:
        """Answer for several databases in one round trip, in their order; an exception stands for one that failed."""
