"""The structural chunker."""

from collections.abc import Iterable, Sequence

from haiku.rag.config import AppConfig
from haiku.rag.contracts import TokenCounter
from haiku.rag.converters.documents.outline import sections_of
from haiku.rag.converters.documents.packing import Draft, Packer
from haiku.rag.models import Chunk, ParsedDocument

MAX_CHARACTERS_PER_TOKEN = 16


class StructuralChunker:
    """Chunks that lie below one path of headings and follow paragraphs, list entries, table rows and lines of code.

    Small neighbours share a chunk, long items are cut at the best boundary that fits, and no word is left out.
    Headings take at most half of a chunk: the nearest are kept, and one that no chunk has above it is in the text.
    """

    def chunk(self, document: ParsedDocument, *, size: int, count_tokens: TokenCounter) -> list[Chunk]:
        """The chunks in reading order. None is over `size` tokens together with its headings, and none is blank."""
        count = _bounded(count_tokens)
        sections = sections_of(document, size=size, count_tokens=count)
        drafts = Packer(size, count).pack(sections) if sections else []
        return [_chunk(draft, order) for order, draft in enumerate(drafts)]


def _bounded(count_tokens: TokenCounter) -> TokenCounter:
    """Some tokenizers read a word of any length as one unknown token: characters count as well, if for little."""

    def count(texts: Sequence[str]) -> list[int]:
        counted = zip(texts, count_tokens(texts), strict=True)
        return [max(tokens, len(text) // MAX_CHARACTERS_PER_TOKEN) for text, tokens in counted]

    return count


def structural_chunker(_config: AppConfig) -> StructuralChunker:
    """The factory that the record names."""
    return StructuralChunker()


def _chunk(draft: Draft, order: int) -> Chunk:
    items = [piece.item for piece in draft.pieces]
    return Chunk(
        content=draft.content,
        order=order,
        headings=list(draft.headings),
        page_numbers=sorted({item.page for item in items if item.page is not None}),
        labels=_unique(item.label for item in items),
        doc_item_refs=_unique(item.ref for item in items if item.ref),
    )


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
