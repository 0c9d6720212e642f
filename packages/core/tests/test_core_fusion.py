"""What each fusion makes of the evidence: cosine, rank, and how much of the attainable text score was attained."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from haiku.rag.config import AppConfig
from haiku.rag.contracts import Fusion, FusionContext, candidate_table, empty_candidates
from haiku.rag.federation.rank import pool_candidates
from haiku.rag.fusion import CalibratedFusion, CosineFusion, ReciprocalRankFusion, WeightedFusion
from haiku.rag.testing.pools import Pool, context_for, pool_table, pools

EVERY = [CosineFusion(), ReciprocalRankFusion(), WeightedFusion(AppConfig()), CalibratedFusion(AppConfig())]


def context(search_type: Any = "hybrid", *, readable: float = 1.0) -> FusionContext:
    return FusionContext(sources=("a",), search_type=search_type, limit=5, readable=readable)


def scored(fusion: Fusion, table: pa.Table, asked: FusionContext) -> dict[str, float]:
    scores = fusion.fuse(pool_candidates([table]), asked).tolist()
    return dict(zip(table["chunk_id"].to_pylist(), scores, strict=True))


@pytest.fixture
def hybrid() -> pa.Table:
    """`both` is found by either leg, `sense` by its vector and `words` by its words alone; 20 is attainable."""
    return candidate_table(
        document_ids=dict.fromkeys(("both", "sense", "words"), "d"),
        vector_leg=["sense", "both"],
        keyword_leg=[("words", 15.0), ("both", 5.0)],
        similarities={"both": 0.6, "sense": 0.8, "words": 0.1},
        hybrid=True,
        attainable=20.0,
    )


@pytest.fixture
def named() -> pa.Table:
    """The hits of a full-text search whose engine tells no attainable score."""
    return candidate_table(document_ids={"x": "d", "y": "d"}, keyword_leg=[("x", 15.0), ("y", 5.0)])


@pytest.mark.parametrize("fusion", EVERY, ids=lambda fusion: type(fusion).__name__)
@pytest.mark.parametrize("search_type", ["hybrid", "vector", "fts"])
def test_every_fusion_takes_an_empty_pool(fusion: Fusion, search_type: Any) -> None:
    assert fusion.fuse(pool_candidates([empty_candidates(), empty_candidates()]), context(search_type)).shape == (0,)


def test_a_share_is_the_score_over_the_attainable_one_and_at_most_one() -> None:
    found = candidate_table(document_ids={"x": "d", "y": "d"}, keyword_leg=[("x", 7.5), ("y", 2.0)], attainable=5.0)
    assert found["keyword_share"].to_pylist() == [1.0, 0.4]
    assert found["keyword_score"].to_pylist() == [7.5, 2.0]


@pytest.mark.parametrize("attainable", [None, 0.0])
def test_without_an_attainable_score_there_is_no_share(attainable: float | None) -> None:
    found = candidate_table(document_ids={"x": "d"}, keyword_leg=[("x", 7.5)], attainable=attainable)
    assert found["keyword_share"].to_pylist() == [None]


def test_full_text_orders_by_the_share_and_without_one_by_a_bounded_score(named: pa.Table) -> None:
    for fusion in (CosineFusion(), WeightedFusion(AppConfig()), CalibratedFusion(AppConfig())):
        assert scored(fusion, named, context("fts")) == pytest.approx({"x": 0.5, "y": 0.25})
        assert fusion.scale(context("fts")) == (0.0, 1.0)


def test_a_vector_search_orders_by_the_cosine_and_one_without_angle_is_zero() -> None:
    found = candidate_table(
        document_ids={"x": "d", "y": "d"}, vector_leg=["x", "y"], similarities={"x": 0.5, "y": np.nan}
    )
    for fusion in (CosineFusion(), WeightedFusion(AppConfig()), CalibratedFusion(AppConfig())):
        assert scored(fusion, found, context("vector")) == {"x": 0.5, "y": 0.0}
        assert fusion.scale(context("vector")) == (-1.0, 1.0)


def test_reciprocal_rank_sums_over_the_legs_that_found_a_passage(hybrid: pa.Table) -> None:
    scores = scored(ReciprocalRankFusion(), hybrid, context())
    assert scores == pytest.approx({"sense": 1 / 61, "both": 1 / 62 + 1 / 62, "words": 1 / 61})
    assert ReciprocalRankFusion().scale(context()) == (0.0, 2 / 61)


def test_weighted_lets_the_words_count_a_twentieth(hybrid: pa.Table) -> None:
    fusion = WeightedFusion(AppConfig())
    assert scored(fusion, hybrid, context()) == pytest.approx(
        {"sense": 0.95 * 0.8, "both": 0.95 * 0.6 + 0.05 * 0.25, "words": 0.95 * 0.1 + 0.05 * 0.75}
    )
    assert fusion.scale(context()) == (-0.95, 1.0)


def test_weighted_takes_both_weights_from_the_configuration(hybrid: pa.Table) -> None:
    fusion = WeightedFusion(AppConfig.model_validate({"search": {"weighted": {"similarity": 2, "keyword": 1}}}))
    assert scored(fusion, hybrid, context())["both"] == pytest.approx(2 * 0.6 + 0.25)
    assert fusion.scale(context()) == (-2.0, 3.0)


def test_weighted_refuses_to_count_nothing() -> None:
    with pytest.raises(ValidationError, match="similarity and keyword must not both be 0"):
        AppConfig.model_validate({"search": {"weighted": {"similarity": 0, "keyword": 0}}})


def test_calibrated_keeps_a_hit_that_only_its_words_tell_of(hybrid: pa.Table) -> None:
    fusion = CalibratedFusion(AppConfig())
    assert scored(fusion, hybrid, context()) == pytest.approx(
        {"sense": 0.6 * 0.8, "both": 0.6 * 0.6 + 0.4 * 0.25, "words": 0.6 * 0.1 + 0.4 * 0.75}
    )
    assert fusion.scale(context()) == (-0.6, 1.0)


@pytest.mark.parametrize(("readable", "weight"), [(1.0, 0.6), (0.5, 0.3), (0.0, 0.06)])
def test_calibrated_trusts_the_words_where_the_model_cannot_read_the_query(
    hybrid: pa.Table, readable: float, weight: float
) -> None:
    scores = scored(CalibratedFusion(AppConfig()), hybrid, context(readable=readable))
    assert scores["words"] == pytest.approx(weight * 0.1 + (1 - weight) * 0.75)


def test_calibrated_takes_its_weight_from_the_configuration(hybrid: pa.Table) -> None:
    fusion = CalibratedFusion(AppConfig.model_validate({"search": {"calibrated": {"similarity": 1}}}))
    assert scored(fusion, hybrid, context()) == {"sense": 0.8, "both": 0.6, "words": 0.1}


@given(pool=pools(), readable=st.floats(0, 1))
def test_a_calibrated_score_is_on_its_scale_whatever_the_model_reads(pool: Pool, readable: float) -> None:
    asked = context_for(pool, readable=readable)
    fusion = CalibratedFusion(AppConfig())
    low, high = fusion.scale(asked)
    scores = fusion.fuse(pool_table(pool), asked)
    assert ((scores >= low - 1e-9) & (scores <= high + 1e-9)).all()


@given(share=st.floats(0, 1), other=st.floats(0, 1), cosine=st.floats(-1, 1))
def test_of_two_passages_as_similar_the_one_with_more_of_the_words_is_never_behind(
    share: float, other: float, cosine: float
) -> None:
    scores = []
    for part in (share, other):
        found = candidate_table(
            document_ids={"x": "d"},
            vector_leg=["x"],
            keyword_leg=[("x", part)],
            similarities={"x": cosine},
            hybrid=True,
            attainable=1.0,
        )
        scores.append(scored(CalibratedFusion(AppConfig()), found, context())["x"])
    assert (scores[0] - scores[1]) * (share - other) >= 0.0
