"""The write pipeline: chunk, embed, store, and tell the plugins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from haiku.rag.client.conversion import Conversion
from haiku.rag.client.embedding import vectors_of, with_pictures
from haiku.rag.contracts.storage import Database, DatabaseRef, DocumentWrite
from haiku.rag.errors import ConversionError, DocumentNotFoundError
from haiku.rag.federation.boundary import attempt
from haiku.rag.federation.listing import placed
from haiku.rag.models import Chunk, Document, DocumentImport, ParsedDocument

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from haiku.rag.federation.session import Session

    T = TypeVar("T")


class Writer:
    """Writes one database. Everything that can fail without it is done before it is touched.

    `any_embedding` lets it be one of another embedding than the configured one, see `Session`.
    """

    def __init__(self, session: Session, ref: DatabaseRef, *, any_embedding: bool = False) -> None:
        self._session = session
        self._ref = ref
        self._any_embedding = any_embedding
        self._conversion = Conversion(session)

    async def opened(self) -> None:
        """Open the database now, within `search.timeout_s`."""
        await self.run(_nothing, timeout_s=self._session.config.search.timeout_s)

    async def prepare(
        self, document: DocumentImport, *, document_id: str | None = None, content_hash: str | None = None
    ) -> DocumentWrite:
        """Run the hooks, chunk and embed what is missing. Stores nothing."""
        return await self.ready(await self.accepted(document), document_id=document_id, content_hash=content_hash)

    async def accepted(self, document: DocumentImport) -> DocumentImport:
        """The document as the listed plugins want it; one of them may refuse it by raising."""
        hooks = self._session.config.hooks
        changed: DocumentImport = await self._session.kernel.transform(
            "haiku_rag_before_ingest", hooks, "document", document=document
        )
        return changed

    async def ready(
        self, document: DocumentImport, *, document_id: str | None = None, content_hash: str | None = None
    ) -> DocumentWrite:
        """Chunk and embed what is missing of a document that was accepted."""
        _check_metadata(document.metadata)
        chunks = await self._cut(document) if document.chunks is None else document.chunks
        numbered = [
            chunk.model_copy(update={"id": chunk.id or str(uuid4()), "order": order})
            for order, chunk in enumerate(chunks)
        ]
        session = self._session
        return DocumentWrite(
            id=document_id,
            uri=document.uri,
            title=document.title,
            metadata=document.metadata,
            content=document.content,
            content_hash=content_hash,
            items=document.items,
            chunks=numbered,
            vectors=await vectors_of(
                session.embedder, numbered, document.pictures, batch_size=session.config.embeddings.batch_size
            ),
            pictures=document.pictures,
            page_images=document.page_images,
        )

    async def store(self, documents: Sequence[DocumentWrite]) -> list[Document]:
        """Store a batch in one commit."""
        stored = await self.run(lambda database: database.write(documents))
        return [await self._announced(document) for document in stored]

    async def create(self, document: DocumentImport, *, content_hash: str) -> Document:
        """Store a document unless the database has its content already; then only what changed beside it is."""
        unchanged = await self.unchanged(document, content_hash)
        if unchanged is not None:
            return unchanged
        return (await self.store([await self.prepare(document, content_hash=content_hash)]))[0]

    async def unchanged(self, document: DocumentImport, content_hash: str) -> Document | None:
        """The stored document of this URI and content, its title and metadata brought up to date; else None."""
        uri = document.uri
        if uri is None:
            return None
        existing = await self.run(lambda database: database.document_by_uri(uri))
        if existing is None or existing.content_hash != content_hash:
            return None
        title = document.title if document.title != existing.title else None
        metadata = document.metadata if document.metadata and document.metadata != existing.metadata else None
        if title is None and metadata is None:
            return placed(existing, self._ref)
        return await self.change(existing.id, title=title, metadata=metadata)

    async def change(
        self,
        document_id: str,
        *,
        uri: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Document:
        """Change what stands beside the content; nothing is embedded."""
        _check_metadata(metadata or {})
        changed = await self.run(lambda database: database.update(document_id, uri=uri, title=title, metadata=metadata))
        if changed is None:
            raise DocumentNotFoundError.within(self._ref.name, document_id)
        return await self._announced(changed)

    async def replace(
        self,
        document_id: str,
        document: DocumentImport,
        *,
        content_hash: str,
        uri: str | None,
        title: str | None,
        metadata: Mapping[str, Any] | None,
    ) -> Document:
        """Give a document new content; what is None beside it stays as it is."""
        existing = await self.run(lambda database: database.document_by_id(document_id))
        if existing is None:
            raise DocumentNotFoundError.within(self._ref.name, document_id)
        merged = document.model_copy(
            update={
                "uri": existing.uri,
                "title": title or existing.title,
                "metadata": existing.metadata if metadata is None else dict(metadata),
            }
        )
        prepared = await self.prepare(merged, document_id=document_id, content_hash=content_hash)
        stored = (await self.store([prepared]))[0]
        return stored if uri in (None, existing.uri) else await self.change(document_id, uri=uri)

    async def delete(self, document_id: str) -> bool:
        """Remove a document; False where there was none."""
        deleted = await self.run(lambda database: database.delete(document_id))
        if deleted:
            await self._session.kernel.observe("haiku_rag_after_delete", document_id=document_id, source=self._ref.name)
        return deleted

    async def run(self, operation: Callable[[Database], Awaitable[T]], *, timeout_s: float = float("inf")) -> T:
        """Run an operation on the open database; its failure is raised as a caller may see it."""
        self._session.ensure_open()

        async def part() -> tuple[T]:
            database = await self._session.database(self._ref, any_embedding=self._any_embedding)
            return (await operation(database),)

        outcome = await attempt(self._session.kernel, self._ref, part, timeout_s=timeout_s)
        if outcome.error is not None:
            raise outcome.error
        assert outcome.value is not None  # an outcome holds a value or an error
        return outcome.value[0]

    async def _announced(self, document: Document) -> Document:
        seen = placed(document, self._ref)
        await self._session.kernel.observe("haiku_rag_after_ingest", document=seen)
        return seen

    async def _cut(self, document: DocumentImport) -> list[Chunk]:
        """The document's chunks; a picture is one of its own where the embedder reads pictures."""
        pictures = document.pictures if "image" in self._session.embedder.modalities else {}
        if pictures and not document.content.strip():
            return with_pictures([], document.items, pictures)
        parsed = ParsedDocument(items=document.items, content=document.content, title=document.title)
        return with_pictures(await self._conversion.chunk(parsed), document.items, pictures)


async def _nothing(database: Database) -> None:
    """Opening is all that is wanted."""


def _check_metadata(metadata: Mapping[str, Any]) -> None:
    try:
        json.dumps(metadata, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConversionError(f"the metadata cannot be stored as JSON: {error}.") from None


def hash_of(data: bytes, media_type: str) -> str:
    """The content's hash: SHA-256 over the media type and the bytes."""
    return hashlib.sha256(media_type.encode("utf-8", "surrogatepass") + b"\0" + data).hexdigest()
