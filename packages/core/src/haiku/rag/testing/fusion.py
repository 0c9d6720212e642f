# ruff: noqa: D102 - a test's name is its documentation
"""What a fusion strategy keeps. `hypothesis` makes up the pools.

1. It gives one score a row: float64, of shape `(rows,)`.
2. A pool of no rows, and one of a single row, are pools like others.
3. A score is finite, or NaN for a row that it leaves out; it lies within `scale` where there is one.
4. It is pure: the same pool gives the same scores, and stays as it was.
5. The order of the databases changes no score.
6. Missing and NaN similarities and text scores, and equal scores throughout, are taken as they come.
7. Not every row is left out of a pool in which every row has its scores.
8. A row's score does not depend on the other rows, so that a database more changes no score. A strategy that cannot do
   without looking at the other rows says so: `looks_at_other_rows = True`.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from haiku.rag.contracts.candidates import CANDIDATE_SCHEMA
from haiku.rag.contracts.fusion import Fusion, FusionContext
from haiku.rag.testing.pools import Pool, context_for, pool_table, pools

_CHECKS = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.function_scoped_fixture],
)


class FusionContract:
    """Override `fusion`, and `looks_at_other_rows` where that is so."""

    looks_at_other_rows = False

    @pytest.fixture
    def fusion(self) -> Fusion:
        """The strategy under test."""
        raise NotImplementedError("override the fixture 'fusion'")  # pragma: no cover - a subclass overrides it

    @_CHECKS
    @given(pool=pools())
    def test_1_it_gives_one_score_a_row(self, fusion: Fusion, pool: Pool) -> None:
        scores = _fused(fusion, pool)
        assert scores.shape == (sum(map(len, pool.tables)),)
        assert scores.dtype == np.float64

    @pytest.mark.parametrize("search_type", ["hybrid", "vector", "fts"])
    @pytest.mark.parametrize("rows", [0, 1])
    def test_2_no_row_and_one_row_are_pools_like_others(self, fusion: Fusion, search_type: str, rows: int) -> None:
        row = {
            "chunk_id": "a",
            "document_id": "d",
            "score": 0.5,
            "rank": 1,
            "similarity": None if search_type == "fts" else 0.5,
            "keyword_score": None if search_type == "vector" else 1.5,
            "keyword_share": None if search_type == "vector" else 0.25,
            "vector_rank": None if search_type == "fts" else 1,
            "keyword_rank": None if search_type == "vector" else 1,
        }
        table = pa.Table.from_pylist([row] * rows, schema=CANDIDATE_SCHEMA)
        table = table.append_column("source", pa.array([0] * rows, type=pa.int32()))
        context = FusionContext(sources=("a",), search_type=search_type, limit=5)  # type: ignore[arg-type]  # parametrised
        assert fusion.fuse(table, context).shape == (rows,)

    @_CHECKS
    @given(pool=pools())
    def test_3_a_score_is_on_the_scale_or_nan(self, fusion: Fusion, pool: Pool) -> None:
        scores = _fused(fusion, pool)
        assert not np.isinf(scores).any()
        scale = fusion.scale(context_for(pool))
        if scale is not None:
            kept = scores[~np.isnan(scores)]
            assert scale[0] < scale[1]
            assert ((kept >= scale[0] - 1e-9) & (kept <= scale[1] + 1e-9)).all()

    @_CHECKS
    @given(pool=pools())
    def test_4_it_is_pure(self, fusion: Fusion, pool: Pool) -> None:
        table = pool_table(pool)
        before = table.to_pylist()
        first = fusion.fuse(table, context_for(pool)).copy()
        second = fusion.fuse(table, context_for(pool))
        np.testing.assert_array_equal(first, second)
        assert repr(table.to_pylist()) == repr(before)

    @_CHECKS
    @given(pool=pools(), data=st.data())
    def test_5_the_order_of_the_databases_changes_no_score(
        self, fusion: Fusion, pool: Pool, data: st.DataObject
    ) -> None:
        shuffled = data.draw(st.permutations(range(len(pool.tables))))
        other = Pool(
            search_type=pool.search_type,
            tables=tuple(pool.tables[index] for index in shuffled),
            names=tuple(pool.names[index] for index in shuffled),
        )
        assert _by_row(fusion, pool) == pytest.approx(_by_row(fusion, other), nan_ok=True, rel=1e-9)

    @_CHECKS
    @given(pool=pools(holes=True))
    def test_6_missing_and_equal_scores_are_taken_as_they_come(self, fusion: Fusion, pool: Pool) -> None:
        assert not np.isinf(_fused(fusion, pool)).any()

    @_CHECKS
    @given(pool=pools(least=1))
    def test_7_not_every_row_is_left_out(self, fusion: Fusion, pool: Pool) -> None:
        assert not np.isnan(_fused(fusion, pool)).all()

    @_CHECKS
    @given(pool=pools(least=1))
    def test_8_a_score_does_not_depend_on_the_other_rows(self, fusion: Fusion, pool: Pool) -> None:
        if self.looks_at_other_rows:
            pytest.skip("the strategy looks at the other rows")
        together = _by_row(fusion, pool)
        for name, table in zip(pool.names, pool.tables, strict=True):
            for row in range(table.num_rows):
                alone = Pool(search_type=pool.search_type, tables=(table.slice(row, 1),), names=(name,))
                for key, score in _by_row(fusion, alone).items():
                    assert score == pytest.approx(together[key], nan_ok=True, rel=1e-9)


def _fused(fusion: Fusion, pool: Pool) -> NDArray[np.float64]:
    return fusion.fuse(pool_table(pool), context_for(pool))


def _by_row(fusion: Fusion, pool: Pool) -> dict[tuple[str, str], float]:
    table = pool_table(pool).to_pylist()
    keys = [(pool.names[row["source"]], row["chunk_id"]) for row in table]
    return dict(zip(keys, _fused(fusion, pool).tolist(), strict=True))
