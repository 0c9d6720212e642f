"""From a source to chunks: choosing the plugins and running them off the event loop."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio

from haiku.rag.contracts.conversion import Chunker, Converter, Source, SourceContent
from haiku.rag.errors import ConversionError, HaikuRagError, UnsupportedSourceError
from haiku.rag.models import Chunk, ParsedDocument
from haiku.rag.models.text import shown_address
from haiku.rag.plugins import ChunkerRecord, ConverterRecord, SourceRecord
from haiku.rag.plugins.messages import install_line

if TYPE_CHECKING:
    from haiku.rag.federation.session import Session

logger = logging.getLogger(__name__)
T = TypeVar("T")
FORMATS = {"md": "text/markdown", "html": "text/html", "plain": "text/plain"}


class Conversion:
    """Fetches, converts and chunks; touches no database."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kernel = session.kernel

    def source_for(self, location: str) -> Source:
        """The source plugin for a path or URL."""
        scheme = location.partition("://")[0].lower() if "://" in location else "file"
        records = self._kernel.records(SourceRecord)
        matching = [record for record in records if scheme in record.schemes]
        if not matching:
            known = sorted({f"{name}://" for record in records for name in record.schemes})
            raise UnsupportedSourceError(
                f"no installed plugin reads '{scheme}://' sources. Known: a path, {', '.join(known)}."
            )
        source: Source = self._kernel.create(
            "source", self._kernel.choose(matching, f"'{scheme}://' sources").name, self._session.config
        )
        return source

    async def discover(self, location: str | Path) -> AsyncIterator[str]:
        """The URIs of the documents at a path or URL."""
        source = self.source_for(str(location))

        async def found() -> list[str]:
            return [uri async for uri in source.discover(str(location))]

        for uri in await _from_source(found, location):
            yield uri

    async def fetch(self, location: str | Path) -> SourceContent:
        """The bytes of one document."""
        source = self.source_for(str(location))
        return await _from_source(partial(source.fetch, str(location)), location)

    async def convert(self, content: SourceContent) -> ParsedDocument:
        """The parsed document; `ConversionError` where nothing readable is in it."""
        if not content.data:
            raise ConversionError(f"'{content.name}' is empty.")
        converter = self._converter_for(content)
        parsed = await _off_loop(partial(converter.convert, content), f"'{content.name}' could not be converted")
        if not parsed.items and not parsed.content.strip():
            raise ConversionError(f"'{content.name}' holds no text.")
        return parsed

    async def chunk(self, parsed: ParsedDocument) -> list[Chunk]:
        """The document's chunks, measured with the embedder's own tokens."""
        config = self._session.config.processing
        name = config.chunker or self._kernel.default(ChunkerRecord).name
        chunker: Chunker = self._kernel.create("chunker", name, self._session.config)
        cut = partial(chunker.chunk, parsed, size=config.chunk_size, count_tokens=self._session.embedder.count_tokens)
        chunks = await _off_loop(cut, "the document could not be cut into chunks")
        if not chunks:
            raise ConversionError("the document was read, and cutting it gave no chunk.")
        return chunks

    def _converter_for(self, content: SourceContent) -> Converter:
        records = self._kernel.records(ConverterRecord)
        media_type = (content.media_type or "").lower()
        typed = [record for record in records if media_type in record.media_types]
        named = [record for record in records if record.reads(content.name)]
        plain = [record for record in records if "text/plain" in record.media_types]
        # Servers call Markdown and source code plain text: a name that says more is believed.
        matching = (named or typed) if media_type == "text/plain" else (typed or named)
        if not matching and media_type.startswith("text/"):
            matching = plain
        kind = media_type or Path(content.name).suffix
        if not matching:
            raise UnsupportedSourceError(_unsupported(content.name, kind, records))
        record = self._kernel.choose(matching, f"reading '{kind or content.name}'")
        converter: Converter = self._kernel.create("converter", record.name, self._session.config)
        return converter


async def _from_source(work: Callable[[], Awaitable[T]], location: str | Path) -> T:
    """A defect in a source is that document's failure, and its words, which may hold the whole address, stay out."""
    try:
        return await work()
    except HaikuRagError:
        raise
    except Exception as error:  # the plugin boundary: the next document may be well
        logger.debug("a source failed", exc_info=True)
        kind = type(error).__name__
    raise UnsupportedSourceError(f"'{shown_address(str(location))}' could not be read ({kind}).")


async def _off_loop(work: Callable[[], T], failure: str) -> T:
    """A plugin's blocking work in a thread; a defect in it is that document's failure."""
    try:
        return await anyio.to_thread.run_sync(work)
    except HaikuRagError:
        raise
    except Exception as error:  # the plugin boundary: the next document may be well
        logger.debug("%s", failure, exc_info=True)
        reason = f"{failure}: {type(error).__name__}: {error}."
    raise ConversionError(reason)


def _unsupported(name: str, kind: str, records: list[ConverterRecord]) -> str:
    if not records:
        return f"no converter is installed to read '{name}'. Install the default set with: {install_line('default')}."
    suffixes = sorted({suffix for record in records for suffix in record.suffixes})
    shown = ", ".join(suffixes[:12]) + (f" and {len(suffixes) - 12} more" if len(suffixes) > 12 else "")
    return f"'{name}' is of a kind that no installed converter reads ({kind or 'no suffix'}). Known: {shown}."
