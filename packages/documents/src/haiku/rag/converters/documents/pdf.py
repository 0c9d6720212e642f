"""The text layer of PDF files."""

import threading
from contextlib import closing

import pypdfium2
from pypdfium2 import raw

from haiku.rag.config import AppConfig
from haiku.rag.contracts import SourceContent
from haiku.rag.converters.documents.decoding import empty
from haiku.rag.converters.documents.items import ItemList
from haiku.rag.converters.documents.pdf_lines import Line, page_lines
from haiku.rag.converters.documents.pdf_paragraphs import add_paragraphs, heading_levels
from haiku.rag.errors import ConversionError
from haiku.rag.models import ParsedDocument

# PDFium is not thread-safe, and conversions run in worker threads: one at a time.
LOCK = threading.Lock()
ENCRYPTED = {raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY}
PLACEHOLDER_TITLES = {"untitled", "anonymous", "(anonymous)", "unspecified"}


class PdfConverter:
    """Paragraphs, list entries and, by their size, headings, with pages and boxes."""

    def convert(self, content: SourceContent) -> ParsedDocument:
        """The parsed document. `ConversionError` for a file that is broken, encrypted, or has no text layer."""
        if not content.data:
            raise empty(content.name)
        with LOCK:
            title, pages = _read(content)
        levels = heading_levels(pages)
        items = ItemList()
        for number, lines in enumerate(pages, start=1):
            add_paragraphs(items, lines, number, levels)
        if not items.items:
            raise ConversionError(
                f"'{content.name}' holds no text layer (scanned?). Run text recognition on it and add the result."
            )
        return items.document(media_type="application/pdf", title=title or items.first_heading())


def pdf_converter(_config: AppConfig) -> PdfConverter:
    """The factory that the record names."""
    return PdfConverter()


def _read(content: SourceContent) -> tuple[str | None, list[list[Line]]]:
    """The title and the lines of every page; all of PDFium's objects are closed before the lock is released."""
    try:
        with closing(pypdfium2.PdfDocument(content.data)) as document:
            title = document.get_metadata_value("Title").strip()
            pages = [_page(document, index) for index in range(len(document))]
    except pypdfium2.PdfiumError as error:
        raise ConversionError(_refusal(content.name, error)) from error
    return (None if title.lower() in PLACEHOLDER_TITLES else title or None), pages


def _page(document: pypdfium2.PdfDocument, index: int) -> list[Line]:
    with closing(document[index]) as page, closing(page.get_textpage()) as textpage:
        return page_lines(page, textpage)


def _refusal(name: str, error: pypdfium2.PdfiumError) -> str:
    if error.err_code in ENCRYPTED:
        return f"'{name}' is encrypted. Save a copy without a password and add that."
    return f"'{name}' is broken: PDFium cannot read it ({error}). Try opening it in a viewer and saving it anew."
