"""Which answers are taken, and what is said of the others."""

import json
from typing import Any

import pytest

from haiku.rag.errors import RerankError
from haiku.rag.rerankers.http.answers import read_scores

TWO = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.25}]


def read(answer: Any, count: int = 2, scale: Any = None) -> list[float]:
    return read_scores(answer if isinstance(answer, bytes) else json.dumps(answer).encode(), count, scale)


@pytest.mark.parametrize(
    "answer",
    [
        {"results": TWO},
        {"data": TWO, "object": "list"},
        TWO,
        [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.25, "text": "echoed"}],
    ],
)
def test_every_usual_shape_is_read(answer: Any) -> None:
    assert read(answer) == [0.25, 0.9]


def test_a_whole_number_is_a_score() -> None:
    assert read([{"index": 0, "score": 3}], 1) == [3.0]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"<html>busy</html>", "the service's answer is not JSON"),
        (b"", "the service's answer is not JSON"),
        (b"\xff\xfe\xff", "the service's answer is not JSON"),
        (b"[" * 100_000, "the service's answer is not JSON"),
        ({"error": "sesame"}, "the service's answer holds no list of scores"),
        ({"results": None}, "the service's answer holds no list of scores"),
        ("text", "the service's answer holds no list of scores"),
        (TWO[:1], "the service returned 1 scores for 2 passages"),
        ([*TWO, TWO[0]], "the service returned 3 scores for 2 passages"),
        ([TWO[0], TWO[0]], "the service returned two scores for one passage"),
        ([0.9, 0.1], "the service returned a score without the index of a passage"),
        ([{"score": 1}, {"score": 2}], "the service returned a score without the index of a passage"),
        ([{"index": True, "score": 1}, TWO[1]], "the service returned a score without the index of a passage"),
        ([{"index": "1", "score": 1}, TWO[1]], "the service returned a score without the index of a passage"),
        ([{"index": 2, "score": 1}, TWO[1]], "the service returned an index that was not sent"),
        ([{"index": -1, "score": 1}, TWO[1]], "the service returned an index that was not sent"),
        ([{"index": 1}, TWO[1]], "the service returned a score that is not a number"),
        ([{"index": 1, "score": "0.9"}, TWO[1]], "the service returned a score that is not a number"),
        ([{"index": 1, "score": True}, TWO[1]], "the service returned a score that is not a number"),
        ([{"index": 1, "score": None}, TWO[1]], "the service returned a score that is not a number"),
        ([{"index": 1, "score": float("nan")}, TWO[1]], "the service returned a score that is not a finite number"),
        ([{"index": 1, "score": float("inf")}, TWO[1]], "the service returned a score that is not a finite number"),
        ([{"index": 1, "score": 10**400}, TWO[1]], "the service returned a score that is not a finite number"),
    ],
)
def test_any_other_answer_is_refused_with_a_reason(answer: Any, reason: str) -> None:
    with pytest.raises(RerankError) as caught:
        read(answer)
    assert str(caught.value) == reason


def test_a_score_that_rounding_put_off_the_scale_is_put_back() -> None:
    assert read([{"index": 0, "score": 1.001}, {"index": 1, "score": -0.001}], scale=(0.0, 1.0)) == [1.0, 0.0]


@pytest.mark.parametrize("score", [7.5, -3.25])
def test_a_score_off_the_scale_says_which_setting_is_wrong(score: float) -> None:
    with pytest.raises(RerankError) as caught:
        read([{"index": 0, "score": score}], 1, (0.0, 1.0))
    assert str(caught.value) == "a score was not between 0 and 1: set rerank_http.scale to the model's scale"
