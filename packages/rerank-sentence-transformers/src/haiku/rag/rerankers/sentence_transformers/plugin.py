"""The records of the reranker `sentence-transformers`."""

from collections.abc import Iterable

from haiku.rag.plugins import ConfigSectionRecord, RerankerRecord, hookimpl

HERE = "haiku.rag.rerankers.sentence_transformers"


@hookimpl
def haiku_rag_register_reranker() -> Iterable[RerankerRecord]:
    """`sentence-transformers`."""
    yield RerankerRecord(
        name="sentence-transformers",
        summary="A cross-encoder in process, from a folder or from the Hugging Face Hub.",
        factory=f"{HERE}.reranker:create_sentence_transformers",
        extra="rerank-sentence-transformers",
        needs="sentence-transformers",
    )


@hookimpl
def haiku_rag_register_config_section() -> Iterable[ConfigSectionRecord]:
    """`rerank_sentence_transformers`: how the model is loaded and run."""
    yield ConfigSectionRecord(
        name="rerank_sentence_transformers",
        summary="How the cross-encoder is loaded and run.",
        factory=f"{HERE}.section:CrossEncoderSection",
        extra="rerank-sentence-transformers",
    )
