"""Documents from paths and URLs, one reported failure each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haiku.rag.client.conversion import Conversion
from haiku.rag.client.writing import Writer, hash_of
from haiku.rag.contracts.storage import DatabaseRef, DocumentWrite
from haiku.rag.errors import (
    ConversionError,
    HaikuRagError,
    PluginNotLoadedError,
    UnknownPluginError,
    UnsupportedSourceError,
)
from haiku.rag.models import Document, DocumentImport
from haiku.rag.models.text import clean_text, shown_address

if TYPE_CHECKING:
    from haiku.rag.federation.session import Session

BATCH_DOCUMENTS = 32
BATCH_CHUNKS = 512


@dataclass(frozen=True, kw_only=True)
class IngestFailure:
    """A document that was not stored, and why. `uri` is without what may be secret: see `shown_address`."""

    uri: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class IngestStep:
    """One step of an ingest: `done` of `total` were worked on; some were stored, or one failed."""

    done: int
    total: int
    uri: str
    stored: tuple[Document, ...] = ()
    failure: IngestFailure | None = None


class IngestResults(list[Document]):
    """The stored documents of a folder, and the failures."""

    def __init__(self, documents: Iterable[Document] = (), *, failures: Iterable[IngestFailure] = ()) -> None:
        super().__init__(documents)
        self.failures = list(failures)


@dataclass(kw_only=True)
class Ingest:
    """Takes a path or URL apart and stores its documents in batches."""

    session: Session
    ref: DatabaseRef
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    _batch: list[DocumentWrite] = field(default_factory=list)

    async def one(self, location: str | Path) -> Document:
        """Store one document; what stops it is raised."""
        document, content_hash = await self._converted(str(location))
        return await Writer(self.session, self.ref).create(document, content_hash=content_hash)

    async def steps(self, location: str | Path) -> AsyncIterator[IngestStep]:
        """Store every document at the location; a document that cannot be read is a failure of its own."""
        uris = [uri async for uri in Conversion(self.session).discover(location)]
        writer = Writer(self.session, self.ref)
        for done, uri in enumerate(uris, 1):
            try:
                stored = await self._added(writer, uri)
            except (ConversionError, UnsupportedSourceError) as error:
                failure = IngestFailure(uri=shown_address(uri), reason=clean_text(str(error)))
                yield IngestStep(done=done, total=len(uris), uri=uri, failure=failure)
                continue
            yield IngestStep(done=done, total=len(uris), uri=uri, stored=stored)
        if self._batch:
            yield IngestStep(done=len(uris), total=len(uris), uri=uris[-1], stored=await self._flushed(writer))

    async def _added(self, writer: Writer, uri: str) -> tuple[Document, ...]:
        document, content_hash = await self._converted(uri)
        unchanged = await writer.unchanged(document, content_hash)
        if unchanged is not None:
            return (unchanged,)
        self._batch.append(await writer.ready(await accepted(writer, document), content_hash=content_hash))
        chunks = sum(len(entry.chunks) for entry in self._batch)
        full = len(self._batch) >= BATCH_DOCUMENTS or chunks >= BATCH_CHUNKS
        return await self._flushed(writer) if full else ()

    async def _flushed(self, writer: Writer) -> tuple[Document, ...]:
        batch, self._batch = self._batch, []
        return tuple(await writer.store(batch))

    async def _converted(self, location: str) -> tuple[DocumentImport, str]:
        return await imported(self.session, location, title=self.title, metadata=self.metadata)


async def imported(
    session: Session, location: str, *, title: str | None, metadata: Mapping[str, Any]
) -> tuple[DocumentImport, str]:
    """What is at a path or URL as a document, and its content's hash. `title` goes before the document's own."""
    conversion = Conversion(session)
    content = await conversion.fetch(location)
    parsed = await conversion.convert(content)
    document = DocumentImport(
        content=parsed.content,
        uri=content.uri,
        title=title or parsed.title,
        metadata=dict(metadata),
        items=parsed.items,
        pictures=parsed.pictures,
        page_images=parsed.page_images,
    )
    return document, hash_of(content.data, content.media_type or content.name)


async def accepted(writer: Writer, document: DocumentImport) -> DocumentImport:
    """The document after the hooks; whatever one of them raises refuses this document and no other."""
    try:
        return await writer.accepted(document)
    except (PluginNotLoadedError, UnknownPluginError):
        raise
    except HaikuRagError as error:
        reason = str(error)
    raise ConversionError(reason)
