"""Documents and what they are made of."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """Common settings: unknown fields are refused, and inputs never show in error texts."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class DocumentItem(Model):
    """One structural part of a document, in reading order.

    `label` is one of title, heading, paragraph, list_item, code, table, picture, caption, or a converter's own.
    `level` is a heading's depth from 1; `page` counts from 1; `box` is left, top, right, bottom in points from the
    page's top left corner.
    """

    ref: str
    label: str
    text: str = ""
    level: int | None = None
    page: int | None = None
    box: tuple[float, float, float, float] | None = None


class ParsedDocument(Model):
    """What a converter makes of a source: its items in order, its whole text, and the bytes of its pictures.

    `pictures` maps an item's ref to an encoded image, `page_images` a page number to one.
    """

    items: list[DocumentItem] = Field(default_factory=list)
    content: str = ""
    title: str | None = None
    media_type: str = "text/plain"
    pictures: dict[str, bytes] = Field(default_factory=dict)
    page_images: dict[int, bytes] = Field(default_factory=dict)


class Chunk(Model):
    """A passage of a document: what is embedded, searched and cited.

    `order` counts from 0 within the document. `embedding` is set on the way into a database and left out on the
    way back. `document_*` and `source` are set on the way back only.
    """

    id: str | None = None
    content: str
    order: int = 0
    headings: list[str] = Field(default_factory=list)
    page_numbers: list[int] = Field(default_factory=list)
    labels: list[str] = Field(default_factory=list)
    doc_item_refs: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    embedding: list[float] | None = Field(default=None, repr=False)
    document_id: str | None = None
    document_uri: str | None = None
    document_title: str | None = None
    document_meta: dict[str, Any] = Field(default_factory=dict)
    source: str | None = None

    def contextualized(self) -> str:
        """The text that is embedded and indexed: the headings above the passage, then the passage."""
        return "\n".join([*self.headings, self.content])


class Document(Model):
    """A stored document. `source` names the database it came from."""

    id: str
    uri: str | None = None
    title: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    content: str | None = None
    content_hash: str | None = None
    created_at: datetime
    updated_at: datetime
    chunk_count: int = 0
    source: str | None = None


class DocumentImport(Model):
    """A document that brings its own parts.

    `chunks=None` lets the client chunk `items` (or `content`); chunks without an embedding are embedded.
    `pictures` and `page_images` are as in `ParsedDocument`.
    """

    content: str = ""
    uri: str | None = None
    title: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    items: list[DocumentItem] = Field(default_factory=list)
    chunks: list[Chunk] | None = None
    pictures: dict[str, bytes] = Field(default_factory=dict)
    page_images: dict[int, bytes] = Field(default_factory=dict)
