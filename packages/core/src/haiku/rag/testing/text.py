"""A converter and a chunker for plain text and simple Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from haiku.rag.contracts.conversion import SourceContent, TokenCounter
from haiku.rag.errors import ConversionError
from haiku.rag.models import Chunk, DocumentItem, ParsedDocument

_HEADING = re.compile(r"(?P<marks>#{1,6})\s+(?P<text>\S.*)")
_PIECE = re.compile(r"\S+\s*")


class TextConverter:
    """The converter `text`: UTF-8 text, paragraphs between blank lines, headings that begin with `#`."""

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    def convert(self, content: SourceContent) -> ParsedDocument:
        """One item a paragraph or heading; the title is the first heading."""
        try:
            text = content.data.decode(content.encoding or "utf-8")
        except (UnicodeDecodeError, LookupError):
            raise ConversionError(f"'{content.name}' is not text in {content.encoding or 'UTF-8'}.") from None
        blocks = [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]
        items = [_item(number, block) for number, block in enumerate(blocks)]
        title = next((item.text for item in items if item.label == "heading"), None)
        return ParsedDocument(items=items, content=text, title=title, media_type=content.media_type or "text/plain")


def _item(number: int, block: str) -> DocumentItem:
    heading = _HEADING.fullmatch(block)
    if heading is None:
        return DocumentItem(ref=f"item/{number}", label="paragraph", text=block)
    return DocumentItem(ref=f"item/{number}", label="heading", text=heading["text"], level=len(heading["marks"]))


class ParagraphChunker:
    """The chunker `paragraphs`: a chunk an item, long ones cut at spaces, and a word that is too long anywhere."""

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    def chunk(self, document: ParsedDocument, *, size: int, count_tokens: TokenCounter) -> list[Chunk]:
        """The chunks in reading order. Headings that leave a passage no room are left out, the outermost first."""
        chunks: list[Chunk] = []
        trail: list[DocumentItem] = []
        for item in document.items or _paragraphs(document.content):
            if item.label in ("heading", "title"):
                trail = [above for above in trail if (above.level or 1) < (item.level or 1)]
                headings = _fitting(trail, size, count_tokens)
                trail.append(item)
            else:
                headings = _fitting(trail, size, count_tokens)
            for text in _cut(item.text.strip(), headings, size, count_tokens):
                chunks.append(_chunk(item, text, headings, len(chunks)))
        return chunks


def _paragraphs(content: str) -> list[DocumentItem]:
    blocks = [block.strip() for block in re.split(r"\n\s*\n", content) if block.strip()]
    return [DocumentItem(ref="", label="paragraph", text=block) for block in blocks]


def _chunk(item: DocumentItem, text: str, headings: list[str], order: int) -> Chunk:
    return Chunk(
        content=text,
        order=order,
        headings=headings,
        page_numbers=[] if item.page is None else [item.page],
        labels=[item.label],
        doc_item_refs=[item.ref] if item.ref else [],
    )


def _fitting(trail: Sequence[DocumentItem], size: int, count_tokens: TokenCounter) -> list[str]:
    """The innermost headings that take at most half the size."""
    headings = [item.text for item in trail]
    while headings and count_tokens(["\n".join(headings)])[0] > size // 2:
        headings = headings[1:]
    return headings


def _cut(text: str, headings: list[str], size: int, count_tokens: TokenCounter) -> list[str]:
    pieces = [match.group() for match in _PIECE.finditer(text)]

    def fits(parts: Sequence[str]) -> bool:
        return count_tokens(["\n".join([*headings, "".join(parts).rstrip()])])[0] <= size

    cut: list[str] = []
    while pieces:
        taken = _longest(pieces, fits)
        if taken == 0 and len(pieces[0]) > 1:
            pieces[:1] = list(pieces[0].rstrip())
            continue
        cut.append("".join(pieces[: max(taken, 1)]).rstrip())
        del pieces[: max(taken, 1)]
    return cut


def _longest(pieces: Sequence[str], fits: Callable[[Sequence[str]], bool]) -> int:
    """How many of the first pieces fit together, by bisection."""
    low, high = 0, len(pieces)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(pieces[:middle]) else (low, middle - 1)
    return low
