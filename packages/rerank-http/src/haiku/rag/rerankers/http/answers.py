"""A service's answer, read with suspicion."""

import json
from math import isfinite
from typing import Any, Never

from haiku.rag.errors import RerankError

# Rounding in 16 bits, which many services compute with, stays below it.
ROUNDING = 0.01


def read_scores(body: bytes, count: int, scale: tuple[float, float] | None) -> list[float]:
    """The scores of `count` passages, in their order.

    The answer is a list of entries, or an object with one under `results` or `data`; an entry has `index` and
    `relevance_score` or `score`. `RerankError` where it is anything else, where not every passage has exactly one
    score, or where a score is not a finite number on the scale.
    """
    entries = _entries(body)
    if len(entries) != count:
        raise RerankError(f"the service returned {len(entries)} scores for {count} passages")
    scores: dict[int, float] = {}
    for entry in entries:
        index = _index(entry, count)
        if index in scores:
            raise RerankError("the service returned two scores for one passage")
        scores[index] = _on_scale(_score(entry), scale)
    return [scores[index] for index in range(count)]


def _entries(body: bytes) -> list[Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        _refuse("the service's answer is not JSON")
    if isinstance(answer, dict):
        answer = answer.get("results", answer.get("data"))
    if not isinstance(answer, list):
        _refuse("the service's answer holds no list of scores")
    return answer


def _index(entry: Any, count: int) -> int:
    index = entry.get("index") if isinstance(entry, dict) else None
    if not isinstance(index, int) or isinstance(index, bool):
        raise RerankError("the service returned a score without the index of a passage")
    if not 0 <= index < count:
        raise RerankError("the service returned an index that was not sent")
    return index


def _score(entry: dict[str, Any]) -> float:
    score = entry.get("relevance_score", entry.get("score"))
    if not isinstance(score, int | float) or isinstance(score, bool):
        raise RerankError("the service returned a score that is not a number")
    try:
        number = float(score)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise RerankError("the service returned a score that is not a finite number")
    return number


def _on_scale(score: float, scale: tuple[float, float] | None) -> float:
    if scale is None:
        return score
    low, high = scale
    room = ROUNDING * (high - low)
    if not low - room <= score <= high + room:
        raise RerankError(f"a score was not between {low:g} and {high:g}: set rerank_http.scale to the model's scale")
    return min(max(score, low), high)


def _refuse(reason: str) -> Never:
    """The error without what caused it, whose text quotes the answer."""
    raise RerankError(reason) from None
