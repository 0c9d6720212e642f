"""Contract R14: a least score that nothing can reach is refused."""

from typing import Any

import pytest

from haiku.rag.errors import ConfigError

from .test_contract_mixed import client as mixed_client
from .test_contract_mixed import two_dimensions
from .test_contract_ranking import Reranking, fused, reranked
from .world import QUERY, World, ids

pytestmark = pytest.mark.anyio


@pytest.fixture
async def two(world: World) -> World:
    await world.near("a", one=0.9)
    await world.near("b", two=0.4)
    return world


REFUSED = [
    ({"min_score": 1.5}, "min_score 1.5 can never pass: scores of 'cosine' lie between -1 and 1."),
    ({"min_score": 1.5, "search_type": "fts"}, "min_score 1.5 can never pass: scores of 'cosine' lie between 0 and 1."),
    (
        {"min_score": 0.1, "fusion": "rrf"},
        "min_score 0.1 can never pass: scores of 'rrf' lie between 0 and 0.03279.",
    ),
    (
        {"min_score": 0.9, "weights": {"a": 0.5, "b": 0.7}},
        "min_score 0.9 can never pass: scores of 'cosine' lie between -1 and 0.4 after weights.",
    ),
    (
        {"min_score": 3.5, "weights": {"a": 2.0}},
        "min_score 3.5 can never pass: scores of 'cosine' lie between -1 and 3 after weights.",
    ),
    (
        {"min_score": 0.2, "sources": ["a"]},
        "min_score 0.2 can never pass: scores of 'rrf' lie between 0 and 0.03279.",
    ),
]


@pytest.mark.parametrize(("more", "text"), REFUSED)
async def test_R14_what_can_never_pass_is_refused_with_the_scale_and_opens_nothing(
    world: World, more: dict[str, Any], text: str
) -> None:
    async with world.client("a", "b") as client:
        with pytest.raises(ValueError, match="can never pass") as caught:
            await client.search(QUERY, **more)
    assert (type(caught.value), str(caught.value)) == (ValueError, text)
    assert world.total("open") == 0


@pytest.mark.parametrize(
    "more",
    [
        {"min_score": 1.0},
        {"min_score": -5},
        {"min_score": 2.5, "weights": {"a": 2.0}},
        {"min_score": 2 / 61, "fusion": "rrf"},
        {"min_score": 1.0, "weights": {"a": 0.1, "b": 1.0}},
        {"min_score": 9, "weights": {"a": 0, "b": 0}},
    ],
)
async def test_R14_what_can_just_pass_is_not_refused(two: World, more: dict[str, Any]) -> None:
    async with two.client("a", "b") as client:
        await client.search(QUERY, **more)


async def test_R14_a_value_of_the_configuration_is_told_by_its_key(two: World) -> None:
    async with two.client("a", "b", search={"min_score": 1.5}) as client:
        with pytest.raises(ConfigError) as caught:
            await client.search(QUERY)
        assert str(caught.value) == ("search.min_score: 1.5 can never pass: scores of 'cosine' lie between -1 and 1.")
        assert ids(await client.search(QUERY, min_score=0.5)) == [("a", "one")]


async def test_R14_scores_without_a_bound_refuse_nothing_until_weights_bound_them(two: World) -> None:
    table = {"one": 7.0, "two": 3.0}
    assert await fused(two, table, None, min_score=5) == [("one", 7.0)]
    with pytest.raises(ValueError, match="scores of 'odd' lie between 0 and 2 after weights"):
        await fused(two, table, None, min_score=5, weights={"a": 2})


async def test_R14_with_a_reranker_its_own_scale_counts(two: World) -> None:
    plugin = Reranking({"one": 3.0, "two": 4.5}, scale=(0.0, 5.0))
    async with reranked(two, plugin, "a", "b") as client:
        assert ids(await client.search(QUERY, min_score=4)) == [("b", "two")]
        with pytest.raises(ValueError, match="min_score 6 can never pass: scores of the reranker 'fake' lie between 0"):
            await client.search(QUERY, min_score=6)
    async with reranked(two, Reranking({"one": 30.0}, scale=None), "a", "b") as client:
        assert ids(await client.search(QUERY, min_score=20)) == [("a", "one")]


async def test_R14_when_the_reranker_fails_hits_are_dropped_and_nothing_is_refused(two: World) -> None:
    plugin = Reranking(scale=(0.0, 5.0))
    plugin.answer = ConnectionError()
    async with reranked(two, plugin, "a", "b") as client:
        found = await client.search(QUERY, min_score=4)
        assert (found, found.report.below_min_score) == ([], 2)
        assert found.report.warnings == [
            "without the reranker min_score 4 was held against the scores of 'cosine': 2 candidates fell below it."
        ]
        kept = await client.search(QUERY, min_score=0.2)
        assert (len(kept), kept.report.warnings) == (2, [])


async def test_R14_a_merge_by_rank_has_its_own_scale(world: World) -> None:
    await two_dimensions(world)
    async with mixed_client(world, "a", "b") as client:
        with pytest.raises(ValueError, match="min_score 0.5 can never pass: scores of 'rrf' lie between 0 and 0.01639"):
            await client.search(QUERY, min_score=0.5)
        assert len(await client.search(QUERY, min_score=1 / 61)) == 2


async def test_R14_an_empty_selection_refuses_nothing(world: World) -> None:
    async with world.client("a", "b") as client:
        assert await client.search(QUERY, sources=[], min_score=9) == []
