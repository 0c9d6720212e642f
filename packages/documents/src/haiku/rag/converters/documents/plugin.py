"""What this package offers."""

from collections.abc import Iterable

from haiku.rag.converters.documents.suffixes import (
    CODE_SUFFIXES,
    TEXT_MEDIA_TYPES,
    TEXT_NAMES,
    TEXT_SUFFIXES,
)
from haiku.rag.plugins import ChunkerRecord, ConverterRecord, SourceRecord, hookimpl

HERE = "haiku.rag.converters.documents"


@hookimpl
def haiku_rag_register_converter() -> Iterable[ConverterRecord]:
    """Plain text and source code, Markdown, HTML, and the text of PDF files."""
    yield ConverterRecord(
        name="text",
        summary="Plain text and source code in any encoding",
        factory=f"{HERE}.text:text_converter",
        extra="documents",
        needs="charset-normalizer",
        media_types=TEXT_MEDIA_TYPES,
        suffixes=TEXT_SUFFIXES | CODE_SUFFIXES,
        names=TEXT_NAMES,
    )
    yield ConverterRecord(
        name="markdown",
        summary="Markdown with tables and front matter",
        factory=f"{HERE}.markdown:markdown_converter",
        extra="documents",
        needs="markdown-it-py",
        media_types=frozenset({"text/markdown", "text/x-markdown"}),
        suffixes=frozenset({".md", ".markdown"}),
    )
    yield ConverterRecord(
        name="html",
        summary="The main content of a web page",
        factory=f"{HERE}.html:html_converter",
        extra="documents",
        needs="selectolax",
        media_types=frozenset({"text/html", "application/xhtml+xml"}),
        suffixes=frozenset({".html", ".htm", ".xhtml"}),
    )
    yield ConverterRecord(
        name="pdf",
        summary="The text layer of PDF files, with pages and boxes",
        factory=f"{HERE}.pdf:pdf_converter",
        extra="documents",
        needs="pypdfium2",
        media_types=frozenset({"application/pdf", "application/x-pdf"}),
        suffixes=frozenset({".pdf"}),
    )


@hookimpl
def haiku_rag_register_chunker() -> Iterable[ChunkerRecord]:
    """Chunks that follow headings, paragraphs, tables and code."""
    yield ChunkerRecord(
        name="structural",
        summary="Follows headings, paragraphs, table rows and lines of code, by the embedder's own tokens",
        factory=f"{HERE}.chunker:structural_chunker",
        standalone=True,
    )


@hookimpl
def haiku_rag_register_source() -> Iterable[SourceRecord]:
    """Documents by URL."""
    yield SourceRecord(
        name="http",
        summary="One document by its http or https URL",
        factory=f"{HERE}.http:http_source",
        extra="documents",
        needs="httpx",
        schemes=("http", "https"),
    )
