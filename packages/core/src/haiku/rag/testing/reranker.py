# ruff: noqa: D102 - a test's name is its documentation
"""What a reranker keeps.

1. Every index that it returns is one of the candidates', and comes once.
2. Scores are finite, never increase down the list, and lie within `scale` where there is one.
3. At least `limit` pairs come back, or all where there are fewer candidates.
4. No candidates give no pairs.
5. A passage that answers the query comes before passages that have nothing to do with it, wherever it stood.
6. The same question gets the same answer, and the candidates stay as they were.
7. Odd texts (empty, blank, emoji, any script, very long) are scored like others.
8. Closing twice is safe.
"""

from collections.abc import Sequence

import pytest

from haiku.rag.contracts.reranker import RerankCandidate, Reranker

QUERY = "when was the stone bridge rebuilt"
ANSWER = "The stone bridge was rebuilt in 1926, after the flood."
PASSAGES = (
    "Yeast makes gas, and so bread rises.",
    "A comet has a tail of dust.",
    "Owls hunt at night.",
    "Sailors tie knots.",
)
ODD_TEXTS = ("", "  \n", "🦀🦀", "橋は1926年に再建された。", "bridge " * 3000)


class RerankerContract:
    """Override `reranker`."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The event loop of these tests."""
        return "asyncio"

    @pytest.fixture
    def reranker(self) -> Reranker:
        """The reranker under test."""
        raise NotImplementedError("override the fixture 'reranker'")  # pragma: no cover - a subclass overrides it

    async def test_1_every_index_is_a_candidate_and_comes_once(self, reranker: Reranker) -> None:
        pairs = await reranker.rerank(QUERY, _candidates([*PASSAGES, ANSWER]), 5)
        indices = [index for index, _ in pairs]
        assert set(indices) <= set(range(5))
        assert len(set(indices)) == len(indices)

    async def test_2_scores_are_finite_ordered_and_on_the_scale(self, reranker: Reranker) -> None:
        scores = [float(score) for _, score in await reranker.rerank(QUERY, _candidates([*PASSAGES, ANSWER]), 5)]
        low, high = reranker.scale or (float("-inf"), float("inf"))
        assert all(low <= score <= high and abs(score) < float("inf") for score in scores)
        assert scores == sorted(scores, reverse=True)

    @pytest.mark.parametrize("limit", [1, 3, 5, 50])
    async def test_3_as_many_come_back_as_were_wanted(self, reranker: Reranker, limit: int) -> None:
        pairs = await reranker.rerank(QUERY, _candidates([*PASSAGES, ANSWER]), limit)
        assert min(limit, 5) <= len(pairs) <= 5

    async def test_4_no_candidates_give_no_pairs(self, reranker: Reranker) -> None:
        assert list(await reranker.rerank(QUERY, [], 5)) == []

    @pytest.mark.parametrize("place", range(5))
    async def test_5_the_answer_comes_first_wherever_it_stood(self, reranker: Reranker, place: int) -> None:
        texts = [*PASSAGES[:place], ANSWER, *PASSAGES[place:]]
        pairs = await reranker.rerank(QUERY, _candidates(texts), 1)
        assert pairs[0][0] == place

    async def test_6_the_same_question_gets_the_same_answer(self, reranker: Reranker) -> None:
        candidates = _candidates([*PASSAGES, ANSWER])
        before = list(candidates)
        first = list(await reranker.rerank(QUERY, candidates, 5))
        second = list(await reranker.rerank(QUERY, candidates, 5))
        assert [index for index, _ in first] == [index for index, _ in second]
        assert candidates == before

    async def test_7_odd_texts_are_scored_like_others(self, reranker: Reranker) -> None:
        texts = [*ODD_TEXTS, ANSWER]
        pairs = await reranker.rerank(QUERY, _candidates(texts), len(texts))
        assert sorted(index for index, _ in pairs) == list(range(len(texts)))

    async def test_8_closing_twice_is_safe(self, reranker: Reranker) -> None:
        await reranker.rerank(QUERY, _candidates(PASSAGES), 2)
        await reranker.close()
        await reranker.close()


def _candidates(texts: Sequence[str]) -> list[RerankCandidate]:
    return [
        RerankCandidate(text=text, source=f"db{number % 2}", chunk_id=f"chunk-{number}")
        for number, text in enumerate(texts)
    ]
