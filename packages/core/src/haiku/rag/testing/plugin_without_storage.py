"""The testing plugin without a storage engine: for the tests of one."""

from collections.abc import Iterable

from haiku.rag.plugins import ChunkerRecord, ConverterRecord, EmbedderRecord, RerankerRecord, hookimpl


@hookimpl
def haiku_rag_register_embedder() -> Iterable[EmbedderRecord]:
    """The embedder `hash`."""
    yield EmbedderRecord(
        name="hash",
        summary="Words hashed into a vector",
        factory="haiku.rag.testing.hash_embedder:HashEmbedder",
        modalities=frozenset({"text", "image"}),
        standalone=True,
    )


@hookimpl
def haiku_rag_register_reranker() -> Iterable[RerankerRecord]:
    """The reranker `overlap`."""
    yield RerankerRecord(
        name="overlap",
        summary="The share of the query's words",
        factory="haiku.rag.testing.overlap_reranker:OverlapReranker",
    )


@hookimpl
def haiku_rag_register_converter() -> Iterable[ConverterRecord]:
    """The converter `text`."""
    yield ConverterRecord(
        name="text",
        summary="Plain text and simple Markdown",
        factory="haiku.rag.testing.text:TextConverter",
        media_types=frozenset({"text/plain", "text/markdown"}),
        suffixes=frozenset({".txt", ".md"}),
    )


@hookimpl
def haiku_rag_register_chunker() -> Iterable[ChunkerRecord]:
    """The chunker `paragraphs`."""
    yield ChunkerRecord(
        name="paragraphs",
        summary="A chunk a paragraph",
        factory="haiku.rag.testing.text:ParagraphChunker",
        standalone=True,
    )
