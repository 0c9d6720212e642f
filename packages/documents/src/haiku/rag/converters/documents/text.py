"""Plain text and source code."""

from pathlib import PurePath

from haiku.rag.config import AppConfig
from haiku.rag.contracts import SourceContent
from haiku.rag.converters.documents.decoding import decode
from haiku.rag.converters.documents.items import ItemList
from haiku.rag.converters.documents.prose import paragraphs, top_level_blocks
from haiku.rag.converters.documents.suffixes import CODE_MEDIA_TYPES, CODE_SUFFIXES, TEXT_MEDIA_TYPES
from haiku.rag.models import ParsedDocument


class TextConverter:
    """Text by its paragraphs, source code by its top-level blocks."""

    def convert(self, content: SourceContent) -> ParsedDocument:
        """The parsed document, its text as it was written. `ConversionError` where there is no text."""
        text = decode(content)
        items = ItemList()
        code = _is_code(content)
        for block in top_level_blocks(text) if code else paragraphs(text):
            items.add("code" if code else "paragraph", block)
        return items.document(media_type=content.media_type or "text/plain", content=text.strip("\n"))


def text_converter(_config: AppConfig) -> TextConverter:
    """The factory that the record names."""
    return TextConverter()


def _is_code(content: SourceContent) -> bool:
    if suffix := PurePath(content.name).suffix.lower():
        return suffix in CODE_SUFFIXES
    media_type = content.media_type or ""
    return media_type in CODE_MEDIA_TYPES or (media_type in TEXT_MEDIA_TYPES and not media_type.startswith("text/"))
