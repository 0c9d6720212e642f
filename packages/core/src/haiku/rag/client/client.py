"""`HaikuRAG`: reading and writing one database, or reading a set of them as one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal

import anyio

from haiku.rag.client.conversion import FORMATS, Conversion
from haiku.rag.client.doctor import DoctorReport, examine
from haiku.rag.client.downloading import ModelDownload, download_models
from haiku.rag.client.files import local_path
from haiku.rag.client.ingest import Ingest, IngestResults, IngestStep
from haiku.rag.client.maintaining import MaintainingClient
from haiku.rag.client.rebuild import Rebuild
from haiku.rag.client.searching import build_request, run_search
from haiku.rag.client.writing import Writer, hash_of
from haiku.rag.contracts.conversion import SourceContent
from haiku.rag.contracts.filters import Filter
from haiku.rag.contracts.storage import DatabaseInfo, DatabaseRef, OpenMode
from haiku.rag.errors import ConversionError, ReadOnlyError
from haiku.rag.federation.listing import Listing, placed
from haiku.rag.federation.request import OnUnavailable
from haiku.rag.federation.scope import quoted
from haiku.rag.models import (
    Chunk,
    Document,
    DocumentImport,
    ParsedDocument,
    RebuildMode,
    RebuildStep,
    SearchResults,
    SearchType,
)
from haiku.rag.models.text import clean_text

Format = Literal["md", "html", "plain"]


class HaikuRAG(MaintainingClient):
    """A client over the configured databases, or over one that is given by its path.

    Use it as an asynchronous context manager; constructing opens nothing, and a client over several databases opens
    each when it is first asked. `config` is the configuration, by default the one that `load_config` finds. `sources`
    narrows what is covered, in the order given. `create` makes the one database if it is not there; `read_only` opens
    everything for reading; `tag` reads the one database as it was at that tag. With `any_embedding` entering does not
    refuse a database of another embedding than the configured one: rebuilding, upkeep, tags and history work on it, all
    else still refuses it.

    Every method that reads takes `sources`: None for every covered database, names for those, `[]` for none.
    Failures are `HaikuRagError`, see `haiku.rag.errors.tree`.
    """

    async def search(
        self,
        query: str | bytes,
        limit: int | None = None,
        *,
        search_type: SearchType = "hybrid",
        filter: str | Filter | None = None,
        sources: Sequence[str] | None = None,
        on_unavailable: OnUnavailable | None = None,
        include_images: bool = False,
        fusion: str | None = None,
        weights: Mapping[str, float] | None = None,
        boosts: Mapping[str, float] | None = None,
        min_score: float | None = None,
        dedupe: bool | None = None,
    ) -> SearchResults:
        """The best passages of the selected databases as one list, with its report.

        `query` is text, or an encoded image where the embedder reads images (else `ValueError`). What is left out
        comes from the `search` section of the configuration. `ValueError` for a blank query.
        """
        request = build_request(
            self.config,
            self._scope,
            query,
            sources=sources,
            limit=limit,
            search_type=search_type,
            filter=filter,
            on_unavailable=on_unavailable,
            include_images=include_images,
            fusion=fusion,
            weights=weights,
            boosts=boosts,
            min_score=min_score,
            dedupe=dedupe,
        )
        return await run_search(self._session, self._scope, request)

    async def list_documents(
        self,
        limit: int | None = None,
        offset: int = 0,
        *,
        filter: str | Filter | None = None,
        sources: Sequence[str] | None = None,
        include_content: bool = False,
    ) -> list[Document]:
        """Documents of the selected databases, interleaved; `limit` is their total number, None for all."""
        if offset < 0 or (limit is not None and limit < 0):
            raise ValueError("limit and offset must not be negative")
        return await self._listing(sources).documents(
            limit=limit, offset=offset, filter=filter, include_content=include_content
        )

    async def count_documents(self, *, filter: str | Filter | None = None, sources: Sequence[str] | None = None) -> int:
        """How many documents the selected databases hold together."""
        return sum(count for _, count in await self._listing(sources).counts(filter))

    async def get_document_by_id(self, document_id: str, source: str | None = None) -> Document | None:
        """The document, from the named database or the first covered one that holds it; None where none does."""
        return _placed(await self._one_or_all(source).first(lambda database: database.document_by_id(document_id)))

    async def get_document_by_uri(self, uri: str, source: str | None = None) -> Document | None:
        """The document of a URI, as `get_document_by_id`."""
        return _placed(await self._one_or_all(source).first(lambda database: database.document_by_uri(uri)))

    async def resolve_document(self, id_or_title_or_uri: str, source: str | None = None) -> Document | None:
        """The document of this id, else of exactly this title, else of this URI."""
        listing = self._one_or_all(source)
        return (
            _placed(await listing.first(lambda database: database.document_by_id(id_or_title_or_uri)))
            or _placed(await listing.first(lambda database: database.document_by_title(id_or_title_or_uri)))
            or _placed(await listing.first(lambda database: database.document_by_uri(id_or_title_or_uri)))
        )

    async def get_chunk_by_id(self, chunk_id: str, source: str | None = None) -> Chunk | None:
        """The chunk, from the named database or the first covered one that holds it."""
        found = await self._one_or_all(source).first(lambda database: _first_chunk(database.chunks_by_id([chunk_id])))
        return None if found is None else found[1].model_copy(update={"source": found[0].name})

    async def get_picture_bytes(self, document_id: str, ref: str, source: str | None = None) -> bytes | None:
        """A picture by its item's ref. Needs `source` on a client covering several (`AmbiguousDatabaseError`)."""
        if source is None:
            self._scope.single("reading a picture")
        found = await self._one_or_all(source).first(lambda database: database.picture(document_id, ref))
        return None if found is None else found[1]

    async def info(self) -> DatabaseInfo:
        """Sizes and versions of the one database."""
        ref = self._scope.single("info")
        timeout_s = self.config.search.timeout_s
        return await Writer(self._session, ref).run(lambda database: database.info(), timeout_s=timeout_s)

    async def doctor(self, *, fix: bool = False, probe: bool = False) -> DoctorReport:
        """What is wrong with the one database, see `haiku.rag.client.examine`, which needs no open client."""
        ref = self._scope.live("doctor")
        if (fix or probe) and self._session.mode_of(ref) is OpenMode.READ:
            raise ReadOnlyError(
                f"'{ref.name}' is open for reading only, and fixing or probing writes.", source=ref.name
            )
        return await examine(self._scope, self.config, fix=fix, probe=probe)

    async def convert(self, source: Path | str) -> ParsedDocument:
        """A path or URL as a parsed document. Touches no database."""
        conversion = Conversion(self._session)
        return await conversion.convert(await conversion.fetch(source))

    async def chunk(self, parsed: ParsedDocument) -> list[Chunk]:
        """A parsed document's chunks. Touches no database."""
        return await Conversion(self._session).chunk(parsed)

    async def create_document(
        self,
        content: str,
        uri: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        format: Format = "md",
    ) -> Document:
        """Store a text. A URI that is there already is updated; with the same content nothing is embedded again."""
        writer = self._writer("creating a document")
        document, content_hash = await self._parsed(content, format)
        named = document.model_copy(
            update={"uri": uri, "title": title or document.title, "metadata": dict(metadata or {})}
        )
        return await writer.create(named, content_hash=content_hash)

    async def create_document_from_source(
        self, source: Path | str, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Document | IngestResults:
        """Store a file or URL, or every readable file of a folder: a list with its failures, `IngestResults`."""
        ref = self._scope.live("creating a document")
        ingest = Ingest(session=self._session, ref=ref, title=title, metadata=metadata or {})
        location = str(source)
        is_local = "://" not in location or location.startswith("file://")
        if not is_local or not await anyio.Path(local_path(location)).is_dir():
            return await ingest.one(source)
        results = IngestResults()
        async for step in ingest.steps(source):
            results.extend(step.stored)
            results.failures += [step.failure] if step.failure else []
        return results

    async def ingest(
        self, source: Path | str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> AsyncIterator[IngestStep]:
        """Store everything at a path or URL, step by step, for a progress bar."""
        ref = self._scope.live("creating documents")
        async for step in Ingest(session=self._session, ref=ref, title=title, metadata=metadata or {}).steps(source):
            yield step

    async def import_documents(self, documents: Sequence[DocumentImport]) -> list[Document]:
        """Store documents that bring their own parts, in one commit."""
        writer = self._writer("importing documents")
        return await writer.store([await writer.prepare(document) for document in documents])

    async def update_document(
        self,
        document_id: str,
        *,
        content: str | None = None,
        uri: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        format: Format = "md",
    ) -> Document:
        """Change what is given. Title, URI and metadata alone embed nothing. `DocumentNotFoundError` without one."""
        writer = self._writer("updating a document")
        if content is None:
            return await writer.change(document_id, uri=uri, title=title, metadata=metadata)
        parsed, content_hash = await self._parsed(content, format)
        return await writer.replace(
            document_id, parsed, content_hash=content_hash, uri=uri, title=title, metadata=metadata
        )

    async def delete_document(self, document_id: str) -> bool:
        """Remove a document with all its parts; False where there was none."""
        return await self._writer("deleting a document").delete(document_id)

    async def rebuild(self, mode: RebuildMode = RebuildMode.FULL) -> AsyncIterator[RebuildStep]:
        """Make every document of the one database anew, step by step, for a progress bar; see `RebuildMode`.

        Broken off at any point it leaves a whole database, and called again with the same mode it goes on. Where the
        configured embedding is not the recorded one (open with `any_embedding=True`), readers see the old vectors until
        all are made, then the new ones; documents that fail prevent that.
        """
        ref = self._scope.live("rebuilding")
        async for step in Rebuild(session=self._session, ref=ref, mode=RebuildMode(mode)).steps():
            yield step

    async def download_models(self) -> AsyncIterator[ModelDownload]:
        """Fetch the models that the configuration names, step by step, for a progress bar; see `ModelDownload`.

        Touches no database and works on any client, open or not. What fails is a step and no exception.
        """
        async with aclosing(download_models(self.config)) as steps:
            async for step in steps:
                yield step

    async def _parsed(self, content: str, format: Format) -> tuple[DocumentImport, str]:
        if format not in FORMATS:
            raise ValueError(f"format must be one of {quoted(tuple(FORMATS))}, not {format!r}")
        data = clean_text(content).encode()
        if not data.strip():
            raise ConversionError("the text is empty.")
        text = SourceContent(uri="", name="the text", data=data, media_type=FORMATS[format], encoding="utf-8")
        parsed = await Conversion(self._session).convert(text)
        document = DocumentImport(
            content=parsed.content, title=parsed.title, items=parsed.items, pictures=parsed.pictures
        )
        return document, hash_of(data, FORMATS[format])

    def _writer(self, operation: str) -> Writer:
        return Writer(self._session, self._scope.live(operation))

    def _listing(self, sources: Sequence[str] | None) -> Listing:
        return Listing(
            session=self._session,
            refs=self._scope.chosen(sources),
            on_unavailable=self.config.search.on_unavailable,
        )

    def _one_or_all(self, source: str | None) -> Listing:
        return self._listing(None if source is None else [source])


def _placed(found: tuple[DatabaseRef, Document] | None) -> Document | None:
    return None if found is None else placed(found[1], found[0])


async def _first_chunk(chunks: Awaitable[list[Chunk]]) -> Chunk | None:
    return next(iter(await chunks), None)
