"""The scores in an answer of Cohere's client, which hands on whatever the service sent."""

from cohere import V2RerankResponse
from cohere.v2.types.v2rerank_response_results_item import V2RerankResponseResultsItem
from haiku.rag.errors import RerankError


def scores_of(answer: V2RerankResponse, count: int) -> list[float]:
    """One score for each of `count` passages, in their order, or a `RerankError`."""
    results: object = answer.results
    if not isinstance(results, list):
        raise RerankError("the service's answer holds no list of scores")
    found = {_place(item, count): _number(item) for item in results}
    if len(results) != count:
        raise RerankError(f"the service returned {len(results)} scores for {count} passages")
    if len(found) != count:
        raise RerankError("the service returned two scores for one passage")
    return [found[place] for place in range(count)]


def _place(item: V2RerankResponseResultsItem, count: int) -> int:
    if type(item.index) is not int or not 0 <= item.index < count:
        raise RerankError("the service returned a score for a passage that was not sent")
    return item.index


def _number(item: V2RerankResponseResultsItem) -> float:
    score: object = item.relevance_score
    # Comparing comes first: a whole number of any length is JSON, and the longest are no float.
    if not isinstance(score, int | float) or isinstance(score, bool) or not 0 <= score <= 1:
        raise RerankError("the service returned a score that is not a number from 0 to 1")
    return float(score)
