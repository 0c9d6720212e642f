"""Describes itself in a coroutine."""

from collections.abc import Iterable

from haiku.rag.plugins import RerankerRecord, hookimpl


@hookimpl
async def haiku_rag_register_reranker() -> Iterable[RerankerRecord]:
    """A reranker that nobody awaits."""
    return [RerankerRecord(name="async", summary="Never awaited", factory="acme_async.nothing:Nothing")]
