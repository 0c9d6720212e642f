"""The records of the reranker that runs in process."""

from collections.abc import Iterable

from haiku.rag.plugins import ConfigSectionRecord, RerankerRecord, hookimpl


@hookimpl
def haiku_rag_register_reranker() -> Iterable[RerankerRecord]:
    """`local`, which needs no service and no download."""
    yield RerankerRecord(
        name="local",
        summary="Late interaction over the token vectors of all-MiniLM-L6-v2 (English); no service, no download.",
        factory="haiku.rag.rerankers.local.reranker:create_local",
        extra="rerank-local",
        needs="onnxruntime",
    )


@hookimpl
def haiku_rag_register_config_section() -> Iterable[ConfigSectionRecord]:
    """The section `rerank_local`."""
    yield ConfigSectionRecord(
        name="rerank_local",
        summary="How many candidates the reranker 'local' reads, and what it keeps of them.",
        factory="haiku.rag.rerankers.local.settings:RerankLocalSettings",
    )
