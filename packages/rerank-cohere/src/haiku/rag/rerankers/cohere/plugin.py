"""The records of Cohere's reranker."""

from collections.abc import Iterable

from haiku.rag.plugins import ConfigSectionRecord, RerankerRecord, hookimpl

HERE = "haiku.rag.rerankers.cohere"


@hookimpl
def haiku_rag_register_reranker() -> Iterable[RerankerRecord]:
    """`cohere`, a service that needs a key."""
    yield RerankerRecord(
        name="cohere",
        summary="Cohere's reranking service (rerank-v3.5 and later); needs a key.",
        factory=f"{HERE}.reranker:create_cohere",
        extra="rerank-cohere",
        needs="cohere",
    )


@hookimpl
def haiku_rag_register_config_section() -> Iterable[ConfigSectionRecord]:
    """The section `rerank_cohere`."""
    yield ConfigSectionRecord(
        name="rerank_cohere",
        summary="How passages are sent to Cohere.",
        factory=f"{HERE}.settings:RerankCohereSettings",
    )
