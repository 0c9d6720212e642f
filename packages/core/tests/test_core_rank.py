"""From candidates to one list: weights, threshold, boosts, cap and ties."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haiku.rag.contracts import CANDIDATE_SCHEMA, FusionContext, candidate_table
from haiku.rag.federation.rank import order, pool_candidates, rank, weighted
from haiku.rag.federation.request import SearchRequest
from haiku.rag.fusion import CosineFusion

COSINE = (-1.0, 1.0)
NAMES = ("a", "b", "c")
cosines = st.floats(-1, 1, allow_nan=False).map(lambda value: round(value, 3))
lists = st.lists(cosines, max_size=6)
pools = st.fixed_dictionaries(dict.fromkeys(NAMES, lists))


def table(database: str, similarities: Sequence[float]) -> pa.Table:
    """The candidates of one database, best first."""
    best_first = sorted(similarities, reverse=True)
    chunks = {f"{database}{index}": value for index, value in enumerate(best_first)}
    documents = {chunk: f"d-{chunk}" for chunk in chunks}
    return candidate_table(document_ids=documents, vector_leg=list(chunks), similarities=chunks)


def ranked(
    databases: Mapping[str, Sequence[float]],
    *,
    limit: int = 100,
    configured: Mapping[str, int] | None = None,
    max_per_source: int | None = None,
    **request: Any,
) -> list[tuple[str, float]]:
    """Chunk ids and scores of the whole way, by cosine."""
    names = tuple(databases)
    place = configured or {name: index for index, name in enumerate(NAMES)}
    pool = pool_candidates([table(name, values) for name, values in databases.items()])
    asked = SearchRequest(query="q", sources=names, limit=limit, search_type="vector", **request)
    context = FusionContext(sources=names, search_type="vector", limit=limit)
    ranking = rank(
        pool,
        CosineFusion().fuse(pool, context),
        asked,
        names=names,
        configured=[place[name] for name in names],
        scale=COSINE,
        max_per_source=max_per_source,
    )
    picked = pool["chunk_id"].take(pa.array(ranking.rows)).to_pylist()
    return list(zip(picked, ranking.scores.tolist(), strict=True))


@given(pools)
def test_scores_never_increase_down_the_list(databases: dict[str, list[float]]) -> None:
    scores = [score for _, score in ranked(databases)]
    assert scores == sorted(scores, reverse=True)


@given(pools, st.permutations(NAMES))
def test_the_order_of_the_selection_changes_nothing(databases: dict[str, list[float]], names: list[str]) -> None:
    assert ranked(databases) == ranked({name: databases[name] for name in names})


@given(pools, st.permutations(NAMES))
def test_the_configured_order_decides_only_exact_ties(databases: dict[str, list[float]], names: list[str]) -> None:
    place = {name: index for index, name in enumerate(names)}
    before, after = ranked(databases), ranked(databases, configured=place)
    assert [score for _, score in before] == [score for _, score in after]
    assert sorted(before) == sorted(after)
    for position, (chunk, score) in enumerate(before):
        if [other for _, other in before].count(score) == 1:
            assert after[position][0] == chunk


@given(pools, st.lists(st.floats(-1, -0.5), max_size=4), st.integers(1, 6))
def test_a_database_with_nothing_relevant_changes_nothing_above_it(
    databases: dict[str, list[float]], poor: list[float], limit: int
) -> None:
    relevant = {name: [abs(value) for value in values] for name, values in databases.items()}
    without = ranked(relevant, limit=limit)
    place = {"z": 0, **{name: index for index, name in enumerate(NAMES, 1)}}
    added = ranked({"z": poor, **relevant}, limit=limit, configured=place)
    assert added[: len(without)] == without


@given(pools)
def test_a_weight_of_one_equals_no_weight(databases: dict[str, list[float]]) -> None:
    assert ranked(databases, weights=dict.fromkeys(NAMES, 1.0)) == ranked(databases)


@given(pools, st.floats(0.5, 2))
def test_a_weight_of_one_changes_no_score_beside_another_weight(
    databases: dict[str, list[float]], weight: float
) -> None:
    plain = dict(ranked(databases))
    for chunk, score in ranked(databases, weights={"a": weight, "b": 1.0}):
        if not chunk.startswith("a"):
            assert score == pytest.approx(plain[chunk])


@given(pools)
def test_a_weight_of_zero_equals_not_asking(databases: dict[str, list[float]]) -> None:
    rest = {name: values for name, values in databases.items() if name != "b"}
    assert ranked(databases, weights={"b": 0}) == ranked(rest | {"b": []})


@given(pools, st.floats(0.01, 5))
def test_a_weight_keeps_the_order_within_its_database(databases: dict[str, list[float]], weight: float) -> None:
    found = [chunk for chunk, _ in ranked(databases, weights={"a": weight}) if chunk.startswith("a")]
    assert found == [chunk for chunk, _ in ranked({"a": databases["a"]})]


def test_a_small_weight_does_not_carry_a_poor_hit_past_a_good_one() -> None:
    assert [chunk for chunk, _ in ranked({"a": [0.2], "b": [0.9]}, weights={"a": 1.1})] == ["b0", "a0"]


def test_scores_without_bound_are_weighted_in_zero_to_one() -> None:
    scores = weighted(np.array([-1000.0, 0.0, 1000.0]), np.zeros(3, dtype=np.int32), ["a"], {"a": 0.5}, None)
    assert scores.tolist() == [0.0, 0.25, 0.5]


def test_a_threshold_drops_what_falls_below_it_and_keeps_what_equals_it() -> None:
    assert ranked({"a": [0.5, 0.49, 0.51]}, min_score=0.5) == [("a0", 0.51), ("a1", 0.5)]


def test_a_threshold_counts_what_it_dropped() -> None:
    pool = pool_candidates([table("a", [0.9, 0.1, 0.2])])
    request = SearchRequest(query="q", sources=("a",), limit=5, min_score=0.5)
    scores = np.array([0.9, 0.2, np.nan])
    ranking = rank(pool, scores, request, names=("a",), configured=[0], scale=COSINE, max_per_source=None)
    assert ranking.below == 1


def test_a_threshold_comes_after_weights_and_before_boosts() -> None:
    assert ranked({"a": [0.5], "b": [0.4]}, weights={"a": 0.5}, boosts={"a": 10}, min_score=0.3) == [("b0", 0.4)]


def test_a_large_boost_always_surfaces_first() -> None:
    found = ranked({"a": [0.99, 0.98], "b": [-0.9]}, boosts={"b": 100}, limit=1)
    assert [chunk for chunk, _ in found] == ["b0"]


def test_a_cap_keeps_the_best_of_each_database() -> None:
    found = ranked({"a": [0.9, 0.8, 0.7], "b": [0.1]}, max_per_source=2)
    assert [chunk for chunk, _ in found] == ["a0", "a1", "b0"]


def test_exact_ties_fall_to_the_rank_within_the_database_then_to_configured_order() -> None:
    found = ranked({"b": [0.5, 0.5], "a": [0.5]})
    assert [chunk for chunk, _ in found] == ["a0", "b0", "b1"]


def test_not_a_number_is_left_out() -> None:
    pool = pool_candidates([table("a", [0.9, 0.8])])
    assert order(pool, np.array([np.nan, 0.1]), [0]).tolist() == [1]


def test_a_hybrid_table_is_in_reciprocal_rank_order_and_ties_fall_to_similarity_then_id() -> None:
    found = candidate_table(
        document_ids=dict.fromkeys("wxyz", "d"),
        vector_leg=["x", "w"],
        keyword_leg=[("y", 3.0), ("z", 1.0)],
        similarities={"w": 0.3, "x": 0.4, "y": 0.6, "z": 0.3},
        hybrid=True,
    )
    assert found["chunk_id"].to_pylist() == ["y", "x", "w", "z"]
    assert found["rank"].to_pylist() == [1, 2, 3, 4]
    assert found.schema == CANDIDATE_SCHEMA
