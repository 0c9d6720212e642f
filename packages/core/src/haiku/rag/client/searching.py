"""From a caller's arguments to a search request, and the hooks around the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from haiku.rag.config import AppConfig
from haiku.rag.contracts.filters import Filter
from haiku.rag.federation.request import OnUnavailable, SearchRequest
from haiku.rag.federation.scope import DatabaseScope
from haiku.rag.federation.search import Search
from haiku.rag.federation.session import Session
from haiku.rag.federation.spaces import check_reads_images
from haiku.rag.models import SearchResults, SearchType
from haiku.rag.models.text import clean_text


def build_request(
    config: AppConfig,
    scope: DatabaseScope,
    query: str | bytes,
    *,
    sources: Sequence[str] | None,
    limit: int | None,
    search_type: SearchType,
    filter: str | Filter | None,
    on_unavailable: OnUnavailable | None,
    include_images: bool,
    fusion: str | None,
    weights: Mapping[str, float] | None,
    boosts: Mapping[str, float] | None,
    min_score: float | None,
    dedupe: bool | None,
) -> SearchRequest:
    """The request with the configuration's defaults. Names that are not covered are `UnknownDatabaseError`."""
    for names in (weights, boosts, None if isinstance(on_unavailable, str) else on_unavailable):
        scope.chosen(list(names or ()))
    defaults = config.search
    image = isinstance(query, bytes)
    if image and search_type == "fts":
        raise ValueError("an image has no words to search for by full text; use search_type='vector'")
    request = SearchRequest(
        query=clean_text(query) if isinstance(query, str) else query,
        sources=tuple(ref.name for ref in scope.chosen(sources)),
        limit=defaults.limit if limit is None else limit,
        search_type="vector" if image else search_type,
        filter=filter,
        fusion=fusion,
        weights=defaults.weights if weights is None else weights,
        boosts=defaults.boosts if boosts is None else boosts,
        min_score=defaults.min_score if min_score is None else min_score,
        dedupe=defaults.dedupe if dedupe is None else dedupe,
        on_unavailable=defaults.on_unavailable if on_unavailable is None else on_unavailable,
        include_images=include_images,
    )
    if request.is_blank:
        raise ValueError("the query is empty: say what to look for")
    return request


async def run_search(session: Session, scope: DatabaseScope, request: SearchRequest) -> SearchResults:
    """Search, with the listed plugins' transforms before and after, and every plugin told when it is over."""
    kernel, hooks = session.kernel, session.config.hooks
    session.ensure_open()
    request = await kernel.transform("haiku_rag_before_search", hooks, "request", request=request)
    scope.chosen(request.sources)
    if request.text is None and request.sources and not session.mixes_embeddings:
        check_reads_images(session.embedder)
    found = await Search(session=session, request=request).run()
    results: SearchResults = await kernel.transform(
        "haiku_rag_after_search", hooks, "results", request=request, results=found
    )
    await kernel.observe("haiku_rag_search_finished", request=request, report=results.report)
    return results
