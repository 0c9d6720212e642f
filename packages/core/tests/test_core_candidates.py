"""Making the table of candidates from columns."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haiku.rag.contracts import CANDIDATE_SCHEMA, candidate_table, empty_candidates, merged_candidates

Row = tuple[str, int, int, float, float]


def columns(rows: list[Row], *, hybrid: bool, cosines: bool = True) -> pa.Table:
    """The table of rows of an id, both ranks, the text score and the cosine."""
    ids, vector, keyword, score, cosine = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return merged_candidates(
        chunk_ids=ids,
        document_ids=[f"d{name}" for name in ids],
        vector_rank=np.array(vector, np.int32),
        keyword_rank=np.array(keyword, np.int32),
        keyword_score=np.array(score, np.float64),
        similarity=np.array(cosine, np.float64) if cosines else None,
        hybrid=hybrid,
    )


def test_no_rows_make_an_empty_table() -> None:
    assert columns([], hybrid=True).equals(empty_candidates())
    assert columns([], hybrid=False, cosines=False).equals(empty_candidates())


def test_a_vector_leg_is_in_its_own_order() -> None:
    found = columns([("b", 2, 0, 0.0, 0.5), ("a", 1, 0, 0.0, 0.9)], hybrid=False)
    assert found["chunk_id"].to_pylist() == ["a", "b"]
    assert found["score"].to_pylist() == found["similarity"].to_pylist() == [0.9, 0.5]
    assert found["keyword_score"].null_count == found["keyword_rank"].null_count == 2


def test_a_keyword_leg_is_in_its_own_order_and_has_no_similarity() -> None:
    found = columns([("b", 0, 2, 1.5, 0.0), ("a", 0, 1, 7.0, 0.0)], hybrid=False, cosines=False)
    assert found["chunk_id"].to_pylist() == ["a", "b"]
    assert found["score"].to_pylist() == found["keyword_score"].to_pylist() == [7.0, 1.5]
    assert found["similarity"].null_count == found["vector_rank"].null_count == 2


def test_full_ties_of_a_hybrid_table_fall_to_the_id() -> None:
    found = columns([("c", 0, 1, 2.0, 0.5), ("b", 1, 0, 0.0, 0.5), ("a", 0, 0, 0.0, 0.1)], hybrid=True)
    assert found["chunk_id"].to_pylist() == ["b", "c", "a"]


def test_an_unknown_angle_comes_last_among_equal_scores() -> None:
    found = columns([("a", 1, 0, 0.0, np.nan), ("b", 0, 1, 2.0, -1.0)], hybrid=True)
    assert found["chunk_id"].to_pylist() == ["b", "a"]


LEG = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


@pytest.mark.parametrize("known", [True, False])
@given(vector=LEG, keyword=LEG, cosines=st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=8, max_size=8))
def test_columns_and_legs_give_the_order_that_the_contract_states(
    known: bool, vector: list[str], keyword: list[str], cosines: list[float]
) -> None:
    cosine = dict(zip("abcdefgh", cosines, strict=True)) if known else {}
    found = candidate_table(
        document_ids=dict.fromkeys("abcdefgh", "d"),
        vector_leg=vector,
        keyword_leg=[(name, float(9 - place)) for place, name in enumerate(keyword)],
        similarities=cosine,
        hybrid=True,
    )

    def reciprocal(name: str) -> float:
        return sum(1 / (61 + leg.index(name)) for leg in (vector, keyword) if name in leg)

    expected = sorted({*vector, *keyword}, key=lambda name: (-reciprocal(name), -cosine.get(name, 0.0), name))
    assert found["chunk_id"].to_pylist() == expected
    assert found["score"].to_pylist() == pytest.approx([reciprocal(name) for name in expected])
    assert found["rank"].to_pylist() == list(range(1, len(expected) + 1))
    assert found.schema == CANDIDATE_SCHEMA
