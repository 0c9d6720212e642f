"""Figures against ones worked out by hand."""

import math

import pytest

from haiku.rag.evals.measuring import figures, measures_for
from haiku.rag.evals.significance import adjusted, paired_difference


def test_measures_are_as_worked_out_by_hand() -> None:
    judged = [{"a": 1, "b": 1}, {"a": 1}]
    rankings = [["a", "x", "b"], []]
    found = figures(judged, rankings, measures_for(10))
    ideal = 1 + 1 / math.log2(3)
    assert found["nDCG@10"] == pytest.approx([(1 + 1 / math.log2(4)) / ideal, 0])
    assert found["MAP"] == pytest.approx([(1 + 2 / 3) / 2, 0])
    assert found["MRR"] == pytest.approx([1, 0])
    assert found["Recall@5"] == pytest.approx([1, 0])


def test_the_better_grade_first_is_worth_more() -> None:
    best, worst = figures([{"a": 2, "b": 1}] * 2, [["a", "b"], ["b", "a"]], measures_for(10))["nDCG@10"]
    assert best == 1
    assert worst == pytest.approx((1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3)))


def test_depths_beyond_the_limit_are_left_out() -> None:
    assert list(measures_for(3)) == ["nDCG@3", "Recall@3", "MAP", "MRR"]
    assert list(measures_for(20)) == ["nDCG@10", "Recall@5", "Recall@10", "Recall@20", "MAP", "MRR"]


def test_a_paired_difference_is_students() -> None:
    found = paired_difference([0.0, 0.0, 0.0], [1.0, 2.0, 3.0])
    assert (found.mean, found.count) == (2, 3)
    # t = 2 / (1 / sqrt 3) = 3.4641 with two degrees of freedom; the 97.5 % point is 4.302653
    assert found.low == pytest.approx(2 - 4.302653 / math.sqrt(3), abs=1e-5)
    assert found.high == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-5)
    assert found.p == pytest.approx(0.0741799, abs=1e-6)


def test_a_difference_without_spread_has_an_answer() -> None:
    assert paired_difference([1, 1], [1, 1]).p == 1
    assert paired_difference([1, 1], [2, 2]).p == 0
    alone = paired_difference([1], [2])
    assert (alone.mean, alone.p, alone.low) == (1, None, None)


def test_several_tests_are_looked_at_together() -> None:
    assert adjusted([0.01, None, 0.04]) == pytest.approx([0.02, None, 0.04])
    assert adjusted([None]) == [None]
