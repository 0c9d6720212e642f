"""Provides a reranker whose name another distribution has taken."""

from collections.abc import Iterable

from haiku.rag.plugins import RerankerRecord, hookimpl


@hookimpl
def haiku_rag_register_reranker() -> Iterable[RerankerRecord]:
    """The other reranker `acme`."""
    yield RerankerRecord(name="acme", summary="Backwards", factory="acme_conflict.reranker:BackwardsReranker")
