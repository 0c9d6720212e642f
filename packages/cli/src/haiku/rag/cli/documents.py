"""Documents as fields for JSON and as lines for a reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from haiku.rag.cli.output import one_line

if TYPE_CHECKING:
    from haiku.rag.models import Document


def document_fields(document: Document, *, content: bool = False) -> dict[str, Any]:
    """The document for JSON, with its text only when that is asked for."""
    return document.model_dump(exclude=None if content else {"content"})


def document_line(document: Document) -> str:
    """The document on one line: id, title, URI."""
    return f"{document.id}  {one_line(document.title or '(no title)')}  {one_line(document.uri or '')}".rstrip()


def document_lines(document: Document) -> Iterator[str]:
    """The document with its text."""
    facts = {
        "id": document.id,
        "title": document.title,
        "uri": document.uri,
        "database": document.source,
        "chunks": document.chunk_count,
        "created": f"{document.created_at:%Y-%m-%d %H:%M:%S}",
        "updated": f"{document.updated_at:%Y-%m-%d %H:%M:%S}",
        "metadata": json.dumps(document.metadata, ensure_ascii=False) if document.metadata else None,
    }
    yield from (f"{name}: {one_line(str(value))}" for name, value in facts.items() if value is not None)
    yield ""
    yield document.content or ""
