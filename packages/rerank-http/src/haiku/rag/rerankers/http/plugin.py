"""The records of the rerankers behind an HTTP service."""

from collections.abc import Iterable

from haiku.rag.plugins import ConfigSectionRecord, RerankerRecord, hookimpl

HERE = "haiku.rag.rerankers.http"


@hookimpl
def haiku_rag_register_reranker() -> Iterable[RerankerRecord]:
    """`http` for any service of this kind, and four that are known well enough to need less configuration."""
    for name, summary in (
        ("http", "Any service with the /rerank protocol, at reranking.model.base_url."),
        ("jina", "The reranking service of Jina AI; needs a key."),
        ("vllm", "A reranking model served by vLLM, at reranking.model.base_url."),
        ("tei", "A reranking model served by Text Embeddings Inference, at reranking.model.base_url."),
        ("zeroentropy", "The reranking service of ZeroEntropy; needs a key."),
    ):
        yield RerankerRecord(
            name=name, summary=summary, factory=f"{HERE}.creating:create_{name}", extra="rerank-http", needs="httpx"
        )


@hookimpl
def haiku_rag_register_config_section() -> Iterable[ConfigSectionRecord]:
    """The section `rerank_http`, which all of them read."""
    yield ConfigSectionRecord(
        name="rerank_http",
        summary="How passages are sent to a reranking service.",
        factory=f"{HERE}.settings:RerankHttpSettings",
        secrets=("headers",),
    )
