"""A stored document made anew: from its source, or from what is stored of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from haiku.rag.client.ingest import accepted, imported
from haiku.rag.client.writing import Writer
from haiku.rag.contracts.storage import DocumentWrite
from haiku.rag.errors import ConversionError, UnsupportedSourceError
from haiku.rag.models import DocumentImport, RebuildMode

if TYPE_CHECKING:
    from haiku.rag.federation.session import Session


@dataclass(frozen=True, kw_only=True)
class Renewed:
    """A document ready to be written in place of the stored one, and what is to be said of it."""

    write: DocumentWrite
    note: str = ""


async def renewed(session: Session, writer: Writer, stored: DocumentWrite, mode: RebuildMode) -> Renewed:
    """The document with new vectors, and as the mode says with new chunks and new content. Stores nothing.

    It keeps its id, its URI, its title, its metadata and its creation.
    """
    note = ""
    if mode is RebuildMode.FULL and _has_source(stored.uri):
        try:
            document, content_hash = await _from_source(session, writer, stored)
        except (ConversionError, UnsupportedSourceError) as error:
            note = f"its source could not be used, so it was rebuilt from what is stored: {error}"
        else:
            return Renewed(write=await _ready(writer, stored, document, content_hash))
    document = _from_store(stored, cut=mode is not RebuildMode.EMBED_ONLY)
    return Renewed(write=await _ready(writer, stored, document, stored.content_hash), note=note)


def _has_source(uri: str | None) -> bool:
    """Whether the URI says where the document is from. Any other is a name that its writer has chosen."""
    return uri is not None and ("://" in uri or PurePath(uri).is_absolute())


async def _from_source(session: Session, writer: Writer, stored: DocumentWrite) -> tuple[DocumentImport, str]:
    document, content_hash = await imported(session, str(stored.uri), title=stored.title, metadata=stored.metadata)
    return await accepted(writer, document.model_copy(update={"uri": stored.uri})), content_hash


def _from_store(stored: DocumentWrite, *, cut: bool) -> DocumentImport:
    can_be_cut = bool(stored.items) or bool(stored.content.strip())
    own = [chunk.model_copy(update={"embedding": None}) for chunk in stored.chunks]
    return DocumentImport(
        content=stored.content,
        uri=stored.uri,
        title=stored.title,
        metadata=dict(stored.metadata),
        items=list(stored.items),
        chunks=None if cut and can_be_cut else own,
        pictures=dict(stored.pictures),
        page_images=dict(stored.page_images),
    )


async def _ready(
    writer: Writer, stored: DocumentWrite, document: DocumentImport, content_hash: str | None
) -> DocumentWrite:
    ready = await writer.ready(document, document_id=stored.id, content_hash=content_hash)
    return replace(ready, uri=stored.uri, created_at=stored.created_at)
