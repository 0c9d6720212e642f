"""The score: MaxSim, the two texts' own vectors, and the fused score."""

import numpy as np
import pytest

from haiku.rag.rerankers.local.compact import compact
from haiku.rag.rerankers.local.scoring import Question, bounded

X, Y, Z = np.eye(3, dtype=np.float32)
NOTHING = np.zeros((0, 3), dtype=np.float32)


def vectors(*rows: object) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def score(question: Question, *passage: object, pooled: object = Z, fused: float | None = None) -> float:
    return question.score(compact(vectors(*passage), vectors(*[pooled])[0]), fused)


def test_each_token_of_the_query_is_given_its_best_match() -> None:
    question = Question(vectors(X, Y), X)  # the texts' own vectors are at right angles
    assert score(question, X, Y) == pytest.approx(0.5)
    assert score(question, X, Z) == pytest.approx(0.25)
    assert score(question, X, X, X, Z) == pytest.approx(0.25)
    assert score(question, Z) == pytest.approx(0.0)


def test_the_texts_own_vectors_are_the_other_half() -> None:
    question = Question(vectors(X), X)
    assert score(question, Z, pooled=X) == pytest.approx(0.5)
    assert score(question, X, pooled=X) == pytest.approx(1.0)
    assert score(question, -X, pooled=-X) == pytest.approx(-1.0)


def test_a_fused_score_has_a_share_of_three_tenths() -> None:
    question = Question(vectors(X), X)
    assert score(question, Z, fused=1.0) == pytest.approx(0.3)
    assert score(question, X, pooled=X, fused=0.0) == pytest.approx(0.7)
    assert score(question, Z, fused=50.0) == pytest.approx(0.3)


def test_rounding_never_leaves_the_scale() -> None:
    longer = np.float32(1.001)
    assert score(Question(vectors(X * longer), X * longer), X * longer, pooled=X * longer) == 1.0
    assert [bounded(value) for value in (-2.0, 0.5, 2.0)] == [-1.0, 0.5, 1.0]


@pytest.mark.parametrize("fused", [None, 0.9])
def test_without_tokens_on_one_side_the_score_is_the_lowest(fused: float | None) -> None:
    assert Question(vectors(X), X).score(compact(NOTHING, X), fused) == -1.0
    assert Question(NOTHING, X).score(compact(vectors(X), X), fused) == -1.0


def test_a_compact_passage_is_nearly_the_passage_in_a_quarter_of_its_memory() -> None:
    numbers = np.random.default_rng(4).normal(size=(200, 384)).astype(np.float32)
    numbers /= np.linalg.norm(numbers, axis=1, keepdims=True)
    passage = compact(numbers, numbers[0])
    again = passage.codes * passage.scales[:, None]
    assert np.abs(np.sum(again * numbers, axis=1) - 1).max() < 1e-3
    assert np.abs(again - numbers).max() <= passage.scales.max() / 2 + 1e-7
    assert passage.nbytes < numbers.nbytes * 0.27


def test_a_token_of_zeros_stays_one() -> None:
    assert not compact(np.zeros((1, 3), dtype=np.float32), X).codes.any()
