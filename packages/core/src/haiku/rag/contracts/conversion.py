"""The contracts on the way from a source to chunks."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from haiku.rag.models import Chunk, ParsedDocument

TokenCounter = Callable[[Sequence[str]], list[int]]


@dataclass(frozen=True, kw_only=True)
class SourceContent:
    """What a source fetched: the bytes, and what is known of them.

    `uri` is where the document is from and its key in a database; `name` a file name for the suffix; `media_type` a
    bare type such as `text/html`, or None where only the name tells.
    """

    uri: str
    name: str
    data: bytes
    media_type: str | None = None
    encoding: str | None = None


class Source(Protocol):
    """A place that documents come from."""

    def discover(self, location: str) -> AsyncIterator[str]:
        """The URIs of the documents at a location: itself, or what a folder holds.

        `UnsupportedSourceError` where there is none.
        """

    async def fetch(self, uri: str) -> SourceContent:
        """One document's bytes. `UnsupportedSourceError` where they cannot be had."""


class Converter(Protocol):
    """Turns bytes into a document's items. Blocking: core calls it in a worker thread."""

    def convert(self, content: SourceContent) -> ParsedDocument:
        """The parsed document. `ConversionError`, with a reason a user can act on, where there is none."""


class Chunker(Protocol):
    """Cuts a parsed document into chunks. Blocking: core calls it in a worker thread."""

    def chunk(self, document: ParsedDocument, *, size: int, count_tokens: TokenCounter) -> list[Chunk]:
        """Chunks in reading order, with headings, pages, labels and item refs.

        None is longer than `size` tokens together with its headings, unless a single token is.
        """
