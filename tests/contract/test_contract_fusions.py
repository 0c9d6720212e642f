"""Contract R3 and R10 for every fusion that is registered: what the ranking makes of its scores, over made-up pools."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from haiku.rag.contracts import FusionContext, candidate_table, empty_candidates
from haiku.rag.federation.rank import pool_candidates, rank
from haiku.rag.federation.request import SearchRequest
from haiku.rag.models import SearchType
from haiku.rag.plugins import FusionRecord
from haiku.rag.testing import testing_config, testing_kernel
from haiku.rag.testing.pools import Pool, pools

CONFIG = testing_config({})
FUSIONS = {
    record.name: CONFIG.kernel.create("fusion", record.name, CONFIG)
    for record in testing_kernel().records(FusionRecord)
}
LIMIT = 100
NOTHING = empty_candidates()
each_fusion = pytest.mark.parametrize("name", sorted(FUSIONS))
Hit = tuple[str, str, float]


def ranked(
    name: str,
    tables: Mapping[str, pa.Table],
    search_type: SearchType,
    *,
    configured: Sequence[str] = (),
    limit: int = LIMIT,
    **request: Any,
) -> list[Hit]:
    """Database, chunk and score of each hit: the fusion, and all that core does with its scores."""
    names = tuple(tables)
    context = FusionContext(sources=names, search_type=search_type, limit=limit, query="stone bridge")
    pool = pool_candidates(list(tables.values()))
    place = {database: index for index, database in enumerate(configured or sorted(names))}
    ranking = rank(
        pool,
        np.asarray(FUSIONS[name].fuse(pool, context), dtype=np.float64),
        SearchRequest(query="stone bridge", sources=names, limit=limit, search_type=search_type, **request),
        names=names,
        configured=[place[database] for database in names],
        scale=FUSIONS[name].scale(context),
        max_per_source=None,
    )
    picked = pool.take(pa.array(ranking.rows)).to_pylist()
    return [
        (names[row["source"]], row["chunk_id"], score)
        for row, score in zip(picked, ranking.scores.tolist(), strict=True)
    ]


def tables_of(pool: Pool) -> dict[str, pa.Table]:
    return dict(zip(pool.names, pool.tables, strict=True))


def share(name: str, search_type: SearchType, score: float) -> float:
    """A score mapped to 0 to 1 by the fusion's scale."""
    low, high = FUSIONS[name].scale(FusionContext(sources=("a",), search_type=search_type, limit=5)) or (0.0, 1.0)
    return (score - low) / (high - low)


def test_every_shipped_fusion_is_here() -> None:
    assert {"cosine", "rrf"} <= set(FUSIONS)


@each_fusion
@given(pool=pools(), data=st.data())
def test_R3_permuting_the_databases_changes_the_order_of_exact_ties_alone(
    name: str, pool: Pool, data: st.DataObject
) -> None:
    tables = tables_of(pool)
    order = data.draw(st.permutations(list(tables)))
    before = ranked(name, tables, pool.search_type)
    shuffled = {database: tables[database] for database in order}
    assert ranked(name, shuffled, pool.search_type) == before
    after = ranked(name, shuffled, pool.search_type, configured=order)
    assert [score for *_, score in after] == [score for *_, score in before]
    assert sorted(after) == sorted(before)
    scores = [score for *_, score in before]
    for position, hit in enumerate(before):
        if scores.count(hit[2]) == 1:
            assert after[position] == hit


@each_fusion
@given(pool=pools(), data=st.data())
def test_R7_an_irrelevant_database_changes_nothing_above_it(name: str, pool: Pool, data: st.DataObject) -> None:
    tables = tables_of(pool)
    poor = data.draw(pools())
    added = {**tables, "z": poor.tables[0] if poor.search_type == pool.search_type else NOTHING}
    alone = ranked(name, tables, pool.search_type)
    together = ranked(name, added, pool.search_type)
    assert [hit for hit in together if hit[0] != "z"] == alone
    least = min((score for *_, score in alone), default=np.inf)
    if all(score < least for database, _, score in together if database == "z"):
        assert together[: len(alone)] == alone


@each_fusion
@given(pool=pools())
def test_R10_case_5_a_weight_of_zero_removes_a_database(name: str, pool: Pool) -> None:
    tables = tables_of(pool)
    removed = ranked(name, tables, pool.search_type, weights={"a": 0})
    assert removed == [hit for hit in ranked(name, tables, pool.search_type) if hit[0] != "a"]


@each_fusion
@given(pool=pools(holes=True))
def test_R10_case_5_a_weight_of_one_changes_nothing(name: str, pool: Pool) -> None:
    tables = tables_of(pool)
    weights = dict.fromkeys(pool.names, 1.0)
    assert ranked(name, tables, pool.search_type, weights=weights) == ranked(name, tables, pool.search_type)


@each_fusion
@given(pool=pools(), weight=st.sampled_from([1.1, 2.0]))
def test_R10_case_5_a_weight_lifts_its_database_and_keeps_its_order(name: str, pool: Pool, weight: float) -> None:
    tables = tables_of(pool)
    plain = ranked(name, tables, pool.search_type)
    lifted = ranked(name, tables, pool.search_type, weights={"a": weight})
    of_a = [chunk for database, chunk, _ in plain if database == "a"]
    assert [chunk for database, chunk, _ in lifted if database == "a"] == of_a
    assert [hit for hit in lifted if hit[0] != "a"] == [hit for hit in plain if hit[0] != "a"]
    score = {hit[:2]: hit[2] for hit in plain}
    for database, chunk, value in lifted:
        before = share(name, pool.search_type, score[database, chunk])
        expected = before * weight if database == "a" else before
        assert share(name, pool.search_type, value) == pytest.approx(expected, abs=1e-9)


@each_fusion
@given(pool=pools())
def test_R10_case_5_a_small_weight_carries_no_poor_hit_past_a_good_one(name: str, pool: Pool) -> None:
    tables = tables_of(pool)
    plain = ranked(name, tables, pool.search_type)
    poor = {hit[:2] for hit in plain if hit[0] == "a" and share(name, pool.search_type, hit[2]) <= 0.2}
    good = {hit[:2] for hit in plain if hit[0] != "a" and share(name, pool.search_type, hit[2]) >= 0.9}
    order = [hit[:2] for hit in ranked(name, tables, pool.search_type, weights={"a": 1.1})]
    assert all(order.index(worse) > order.index(better) for worse in poor for better in good)


@each_fusion
@pytest.mark.parametrize("search_type", ["hybrid", "vector", "fts"])
def test_R10_case_5_a_poor_hit_of_a_weight_of_one_tenth_more_stays_behind(name: str, search_type: SearchType) -> None:
    filler = {f"filler{number}": 0.95 - number / 1000 for number in range(40)}
    tables = {
        "a": _candidates({**filler, "poor": 0.2}, {**dict.fromkeys(filler, 9.0), "poor": 2.0}, search_type),
        "b": _candidates({"good": 0.9}, {"good": 9.0}, search_type),
    }
    found = [hit[1] for hit in ranked(name, tables, search_type, weights={"a": 1.1})]
    assert found.index("good") < found.index("poor")


def _candidates(cosines: Mapping[str, float], words: Mapping[str, float], search_type: SearchType) -> pa.Table:
    best = sorted(cosines, key=lambda chunk: -cosines[chunk])
    return candidate_table(
        document_ids={chunk: f"d-{chunk}" for chunk in cosines},
        vector_leg=best if search_type != "fts" else (),
        keyword_leg=[(chunk, words[chunk]) for chunk in best] if search_type != "vector" else (),
        similarities=cosines if search_type != "fts" else None,
        hybrid=search_type == "hybrid",
        attainable=10.0,
    )


@each_fusion
@given(pool=pools(), boost=st.sampled_from([10.0, 1000.0]))
def test_R10_a_large_boost_puts_its_database_first(name: str, pool: Pool, boost: float) -> None:
    tables = tables_of(pool)
    plain = ranked(name, tables, pool.search_type)
    lifted = ranked(name, tables, pool.search_type, boosts={"a": boost})
    scores = [score for *_, score in plain]
    assume(not scores or max(scores) - min(scores) < boost)
    of_a = [hit[1] for hit in plain if hit[0] == "a"]
    assert sorted(hit[1] for hit in lifted[: len(of_a)]) == sorted(of_a)
    assert {hit[0] for hit in lifted[: len(of_a)]} <= {"a"}
    assert [hit for hit in lifted if hit[0] != "a"] == [hit for hit in plain if hit[0] != "a"]


@each_fusion
@given(pool=pools(holes=True), limit=st.integers(1, 5))
def test_R6_scores_are_numbers_that_never_increase_whatever_is_missing(name: str, pool: Pool, limit: int) -> None:
    request: dict[str, Any] = {"weights": {"a": 2.0}, "boosts": {"a": 0.5}, "min_score": 0.01}
    for more in ({}, request):
        scores = [score for *_, score in ranked(name, tables_of(pool), pool.search_type, limit=limit, **more)]
        assert np.isfinite(scores).all()
        assert scores == sorted(scores, reverse=True)
        assert len(scores) <= limit


@each_fusion
@pytest.mark.parametrize("search_type", ["hybrid", "vector", "fts"])
def test_R10_case_5_empty_pools_one_hit_and_equal_scores_do_no_harm(name: str, search_type: SearchType) -> None:
    request: dict[str, Any] = {"weights": {"a": 0.5}, "boosts": {"a": 1.0}, "min_score": -1.0}
    one = _candidates({"x": 0.5}, {"x": 5.0}, search_type)
    equal = _candidates(dict.fromkeys("xyz", 0.5), dict.fromkeys("xyz", 5.0), search_type)
    for more in ({}, request):
        assert ranked(name, {"a": NOTHING}, search_type, **more) == []
        assert ranked(name, {"a": NOTHING, "b": NOTHING}, search_type, **more) == []
        assert [hit[1] for hit in ranked(name, {"a": one}, search_type, **more)] == ["x"]
        assert len(ranked(name, {"a": equal, "b": equal}, search_type, **more)) == 6
