"""Misspells the name of a hook."""

from collections.abc import Iterable

from haiku.rag.plugins import RerankerRecord, hookimpl


@hookimpl
def haiku_rag_register_rerankr() -> Iterable[RerankerRecord]:
    """A reranker that nobody will see."""
    yield RerankerRecord(name="typo", summary="Unseen", factory="acme_typo.nothing:Nothing")
