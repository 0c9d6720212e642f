"""What acme-rerank registers."""

from collections.abc import Iterable

from haiku.rag.plugins import RerankerRecord, hookimpl


@hookimpl
def haiku_rag_register_reranker() -> Iterable[RerankerRecord]:
    """The reranker `acme`."""
    yield RerankerRecord(name="acme", summary="Words and pairs of words", factory="acme_rerank.reranker:AcmeReranker")
