# ruff: noqa: D102 - a test's name is its documentation
"""What a chunker keeps.

1. Chunks are numbered from 0 in reading order.
2. No word of the document is lost.
3. No chunk is longer than `size` tokens together with its headings, whatever is counted as a token, unless a single
   token is.
4. A chunk refers to items of the document, and the refs follow the reading order.
5. A chunk has the headings above it, the labels of its items and their pages.
6. Content without items is cut all the same; a document without text gives no chunk.
7. The same document gives the same chunks, and stays as it was.
8. No chunk is blank.
"""

from collections.abc import Sequence

import pytest

from haiku.rag.contracts.conversion import Chunker, TokenCounter
from haiku.rag.models import Chunk, DocumentItem, ParsedDocument

SIZE = 16
_LONG = " ".join(f"word{number}" for number in range(90))
_UNBROKEN = "橋は洪水の後に再建された" * 12


def count_words(texts: Sequence[str]) -> list[int]:
    """A token is a word."""
    return [len(text.split()) for text in texts]


def count_characters(texts: Sequence[str]) -> list[int]:
    """A token is a character."""
    return [len(text) for text in texts]


def sample_document() -> ParsedDocument:
    """Headings in two levels, a long paragraph, a list, a table and text without spaces, on two pages."""
    items = [
        DocumentItem(ref="i/0", label="heading", text="Bridges", level=1, page=1),
        DocumentItem(ref="i/1", label="paragraph", text="The stone bridge was rebuilt in 1926.", page=1),
        DocumentItem(ref="i/2", label="heading", text="Floods", level=2, page=1),
        DocumentItem(ref="i/3", label="paragraph", text=_LONG, page=1),
        DocumentItem(ref="i/4", label="list_item", text="first of two", page=2),
        DocumentItem(ref="i/5", label="list_item", text="second of two", page=2),
        DocumentItem(ref="i/6", label="table", text="| year | level |\n| --- | --- |\n| 1926 | 7 m |", page=2),
        DocumentItem(ref="i/7", label="heading", text="Ferries", level=1, page=2),
        DocumentItem(ref="i/8", label="paragraph", text=_UNBROKEN, page=2),
    ]
    return ParsedDocument(items=items, content="\n\n".join(item.text for item in items), title="Bridges")


class ChunkerContract:
    """Override `chunker`."""

    @pytest.fixture
    def chunker(self) -> Chunker:
        """The chunker under test."""
        raise NotImplementedError("override the fixture 'chunker'")  # pragma: no cover - a subclass overrides it

    def test_1_chunks_are_numbered_in_reading_order(self, chunker: Chunker) -> None:
        chunks = _cut(chunker)
        assert [chunk.order for chunk in chunks] == list(range(len(chunks)))
        marks = ("1926", "word0", "word89", "first", "second", "year", "橋")
        places = [chunks.index(_holding(chunks, mark)) for mark in marks]
        assert places == sorted(places)

    @pytest.mark.parametrize("size", [16, 64, 1000])
    def test_2_no_word_is_lost(self, chunker: Chunker, size: int) -> None:
        chunks = _cut(chunker, size=size)
        held = " ".join(chunk.contextualized() for chunk in chunks)
        words = [word for item in sample_document().items for word in item.text.split() if word.isalnum()]
        assert [word for word in words if word not in held and word != _UNBROKEN] == []
        unbroken = "".join(chunk.content for chunk in chunks if set(chunk.content) <= set(_UNBROKEN))
        assert unbroken == _UNBROKEN or _UNBROKEN in held

    @pytest.mark.parametrize("count_tokens", [count_words, count_characters])
    @pytest.mark.parametrize("size", [16, 40, 1000])
    def test_3_no_chunk_is_longer_than_the_size(self, chunker: Chunker, count_tokens: TokenCounter, size: int) -> None:
        chunks = _cut(chunker, size=size, count_tokens=count_tokens)
        assert all(count_tokens([chunk.contextualized()])[0] <= size for chunk in chunks)

    def test_4_refs_are_items_in_reading_order(self, chunker: Chunker) -> None:
        order = [item.ref for item in sample_document().items]
        refs = [order.index(ref) for chunk in _cut(chunker) for ref in chunk.doc_item_refs]
        assert refs == sorted(refs)
        assert {order.index(item.ref) for item in sample_document().items if item.label != "heading"} <= set(refs)

    def test_5_a_chunk_knows_its_headings_labels_and_pages(self, chunker: Chunker) -> None:
        chunks = _cut(chunker, size=1000)
        flood = _holding(chunks, "word5")
        assert flood.headings == ["Bridges", "Floods"]
        assert "paragraph" in flood.labels
        assert 1 in flood.page_numbers
        assert _holding(chunks, "再建").headings == ["Ferries"]
        assert 2 in _holding(chunks, "再建").page_numbers
        assert "table" in _holding(chunks, "7 m").labels

    def test_6_content_without_items_is_cut_and_no_text_gives_no_chunk(self, chunker: Chunker) -> None:
        chunks = chunker.chunk(ParsedDocument(content=_LONG), size=SIZE, count_tokens=count_words)
        assert " ".join(" ".join(chunk.content for chunk in chunks).split()) == _LONG
        assert chunker.chunk(ParsedDocument(), size=SIZE, count_tokens=count_words) == []

    def test_7_the_same_document_gives_the_same_chunks(self, chunker: Chunker) -> None:
        document = sample_document()
        first = chunker.chunk(document, size=SIZE, count_tokens=count_words)
        assert chunker.chunk(document, size=SIZE, count_tokens=count_words) == first
        assert document == sample_document()

    def test_8_no_chunk_is_blank(self, chunker: Chunker) -> None:
        assert all(chunk.content.strip() for chunk in _cut(chunker))


def _cut(chunker: Chunker, *, size: int = SIZE, count_tokens: TokenCounter = count_words) -> list[Chunk]:
    return chunker.chunk(sample_document(), size=size, count_tokens=count_tokens)


def _holding(chunks: Sequence[Chunk], text: str) -> Chunk:
    holding = [chunk for chunk in chunks if text in chunk.content]
    assert holding, f"no chunk holds {text!r}"
    return holding[0]
