"""A least score that nothing can reach is refused instead of leaving every list empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from haiku.rag.errors import ConfigError
from haiku.rag.federation.fusing import context_of
from haiku.rag.federation.query import reranks
from haiku.rag.federation.rank import Scale
from haiku.rag.federation.rerank import Reranking
from haiku.rag.federation.strategy import Strategy

if TYPE_CHECKING:
    from haiku.rag.federation.request import SearchRequest
    from haiku.rag.federation.session import Session


def check_threshold(session: Session, request: SearchRequest, strategy: Strategy) -> None:
    """`raise_unreachable` for the scores that are expected: the reranker's, else the fusion's. Opens no database."""
    if request.min_score is None:
        return
    if reranks(session, request):
        reranking = Reranking.of(session)
        of = f"the reranker '{reranking.model.provider}'"
        raise_unreachable(session, request, reranking.reranker.scale, of=of)
        return
    scale = strategy.fusion.scale(context_of(request, request.sources))
    raise_unreachable(session, request, scale, of=f"'{strategy.name}'")


def raise_unreachable(session: Session, request: SearchRequest, scale: Scale, *, of: str) -> None:
    """`ValueError` where no score on the scale, after weights, is as high as `min_score`.

    It is a `ConfigError` where the value is the configuration's.
    """
    reached = weighted_scale(scale, request.weights, request.sources)
    if request.min_score is None or reached is None or request.min_score <= reached[1]:
        return
    weighted = "" if reached == scale else " after weights"
    text = (
        f"{request.min_score:g} can never pass: scores of {of} lie between {reached[0]:.4g} and "
        f"{reached[1]:.4g}{weighted}."
    )
    if request.min_score == session.config.search.min_score:
        raise ConfigError(f"search.min_score: {text}")
    raise ValueError(f"min_score {text}")


def weighted_scale(scale: Scale, weights: Mapping[str, float], names: Sequence[str]) -> Scale:
    """The scale of `rank.weighted`'s scores: stretched by a weight above 1, None where there is no bound."""
    used = [weights.get(name, 1.0) for name in names]
    largest = max(used, default=0.0)
    if largest == 0.0 or (scale is None and all(weight == 1.0 for weight in used)):
        return None
    if scale is None:
        return (0.0, largest)
    low, high = scale
    return (low, high if largest == 1.0 else low + largest * (high - low))
