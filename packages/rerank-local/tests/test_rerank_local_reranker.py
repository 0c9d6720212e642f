"""What the reranker scores, what it remembers, and how it goes about it."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from anyio import from_thread

from haiku.rag.contracts import RerankCandidate
from haiku.rag.embedders.local import token_vectors
from haiku.rag.embedders.local.model import EncoderModel
from haiku.rag.embedders.local.token_vectors import TokenReader
from haiku.rag.errors import EmbeddingError, RerankError
from haiku.rag.rerankers.local.reranker import LocalReranker

pytestmark = pytest.mark.anyio

QUERY = "who keeps the key of the lighthouse"
ANSWER = "The harbour master keeps the lighthouse key in her desk."
TEXTS = (
    "Bread rises because yeast makes gas.",
    ANSWER,
    "A lighthouse stood here until 1911.",
    "Owls hunt at night. " * 30,
    "The key of G has one sharp.",
)
JAPANESE = "灯台の鍵は誰が持っていますか"

Reranker = Callable[..., LocalReranker]
Candidates = Callable[..., list[RerankCandidate]]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were read with the model, in order; the queries among them."""
    texts: list[str] = []
    whole = TokenReader.read

    def counted(self: TokenReader, given: Sequence[str]) -> Any:
        texts.extend(given)
        return whole(self, given)

    monkeypatch.setattr(TokenReader, "read", counted)
    return texts


@pytest.fixture
def on_batch(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Has something happen in the worker thread after each batch that the model reads."""
    whole = EncoderModel.token_vectors

    def arrange(happen: Callable[[], object]) -> None:
        def followed(self: EncoderModel, sequences: Sequence[tuple[int, ...]]) -> Any:
            vectors = whole(self, sequences)
            happen()
            return vectors

        monkeypatch.setattr(EncoderModel, "token_vectors", followed)

    return arrange


async def test_a_score_does_not_depend_on_the_other_candidates(reranker: Reranker, candidates: Candidates) -> None:
    together = dict(await reranker().rerank(QUERY, candidates(*TEXTS), 5))
    for number, text in enumerate(TEXTS):
        [(_, alone)] = await reranker().rerank(QUERY, candidates(text), 5)
        assert alone == pytest.approx(together[number], abs=1e-4)


async def test_what_is_remembered_is_scored_as_what_was_just_read(
    reranker: Reranker, candidates: Candidates, read: list[str]
) -> None:
    local = reranker()
    cold = await local.rerank(QUERY, candidates(*TEXTS), 5)
    warm = await local.rerank(QUERY, candidates(*TEXTS), 5)
    assert warm == cold
    assert read == [QUERY, *TEXTS, QUERY]


async def test_without_a_cache_everything_is_read_anew(
    reranker: Reranker, candidates: Candidates, read: list[str]
) -> None:
    local = reranker(cache_mb=0)
    assert await local.rerank(QUERY, candidates(ANSWER), 1) == await local.rerank(QUERY, candidates(ANSWER), 1)
    assert read == [QUERY, ANSWER] * 2


async def test_the_same_passage_of_two_databases_is_read_once(
    reranker: Reranker, candidates: Candidates, read: list[str]
) -> None:
    pairs = await reranker().rerank(QUERY, candidates(ANSWER, TEXTS[0], ANSWER), 3)
    assert [index for index, _ in pairs] == [0, 2, 1]
    assert pairs[0][1] == pairs[1][1]
    assert read.count(ANSWER) == 1


async def test_only_the_first_candidates_are_scored_but_as_many_as_are_wanted(
    reranker: Reranker, candidates: Candidates
) -> None:
    local = reranker(max_candidates=2)
    assert {index for index, _ in await local.rerank(QUERY, candidates(*TEXTS), 1)} == {0, 1}
    assert {index for index, _ in await local.rerank(QUERY, candidates(*TEXTS), 4)} == {0, 1, 2, 3}


async def test_a_better_fused_score_settles_what_is_otherwise_equal(reranker: Reranker, candidates: Candidates) -> None:
    offered = [*candidates(ANSWER, score=0.1), *candidates(ANSWER, score=0.9)]
    [(first, high), (_, low)] = await reranker().rerank(QUERY, offered, 2)
    assert first == 1
    assert high - low == pytest.approx(0.3 * 0.8)


async def test_of_a_long_passage_its_beginning_is_read(reranker: Reranker, candidates: Candidates) -> None:
    beginning = "Owls hunt at night. " * 80
    local = reranker(max_tokens=300)
    near = dict(await local.rerank(QUERY, candidates(beginning, f"{beginning} {ANSWER}"), 2))
    assert near[0] == pytest.approx(near[1], abs=1e-4)
    far = dict(await reranker(max_tokens=800).rerank(QUERY, candidates(beginning, f"{beginning} {ANSWER}"), 2))
    assert far[1] > far[0] + 0.1


async def test_odd_texts_have_scores_and_an_empty_one_the_lowest(reranker: Reranker, candidates: Candidates) -> None:
    odd = ["", " \n\t", "?!", "to be or not to be", "橋は再建された。", "\ud800", "x" * 5000, "word " * 50_000, "\0"]
    scores = dict(await reranker().rerank(QUERY, candidates(*odd, ANSWER), 10))
    assert max(scores, key=lambda index: scores[index]) == len(odd)
    assert {index for index, score in scores.items() if score == -1.0} == {0, 1, 8}


@pytest.mark.parametrize("query", ["?!", "to be or not to be", "word " * 50_000, "4711", "Où est la clé du phare ?"])
async def test_odd_queries_are_answered(reranker: Reranker, candidates: Candidates, query: str) -> None:
    assert len(await reranker().rerank(query, candidates(*TEXTS), 5)) == 5


async def test_a_query_in_another_script_leaves_the_fused_order_and_reads_nothing(
    reranker: Reranker, candidates: Candidates, read: list[str]
) -> None:
    offered = [candidates(text, score=score)[0] for text, score in zip(TEXTS, (0.9, 0.5, 0.5, 0.2, -7.0), strict=True)]
    pairs = await reranker(max_candidates=1).rerank(JAPANESE, offered, 1)
    assert pairs == [(0, 0.9), (1, 0.5), (2, 0.5), (3, 0.2), (4, -1.0)]
    assert read == []


async def test_a_query_in_another_script_is_refused_where_there_are_no_fused_scores(
    reranker: Reranker, candidates: Candidates
) -> None:
    with pytest.raises(RerankError, match="'all-MiniLM-L6-v2' reads English, and the query is in another script"):
        await reranker().rerank(JAPANESE, candidates(*TEXTS), 1)


async def test_a_model_that_cannot_be_used_is_a_failure_that_says_why(
    reranker: Reranker, candidates: Candidates, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> EncoderModel:
        raise EmbeddingError("'model.onnx' cannot be read: it is gone. Install it again.")

    monkeypatch.setattr(token_vectors, "minilm_model", broken)
    with pytest.raises(RerankError, match=r"^'model.onnx' cannot be read: it is gone. Install it again$"):
        await reranker().rerank(QUERY, candidates(*TEXTS), 1)


async def test_a_cancelled_call_stops_after_its_batch_and_what_it_has_read_is_kept(
    reranker: Reranker, candidates: Candidates, read: list[str], on_batch: Callable[[Callable[[], object]], None]
) -> None:
    texts = [f"Passage {number}. " + "Owls hunt at night. " * 60 for number in range(30)]
    batches: list[int] = []
    local = reranker()
    with anyio.CancelScope() as scope:

        def cancel_in_the_third() -> None:  # the first is the query
            batches.append(1)
            if len(batches) == 3:
                from_thread.run_sync(scope.cancel)

        on_batch(cancel_in_the_third)
        await local.rerank(QUERY, candidates(*texts), 30)
    assert scope.cancelled_caught
    assert len(batches) == 3
    read.clear()
    assert len(await local.rerank(QUERY, candidates(*texts), 30)) == 30
    assert 1 <= len(read) - 1 < 30


async def test_the_model_runs_in_worker_threads(
    reranker: Reranker, candidates: Candidates, on_batch: Callable[[Callable[[], object]], None]
) -> None:
    threads: list[threading.Thread] = []
    on_batch(lambda: threads.append(threading.current_thread()))
    await reranker().rerank(QUERY, candidates(*TEXTS), 5)
    assert len(threads) >= 2
    assert threading.current_thread() not in threads


async def test_two_calls_at_once_read_a_passage_once_and_answer_as_one_after_the_other(
    reranker: Reranker, candidates: Candidates, read: list[str]
) -> None:
    other = "when did the lighthouse stand"
    expected = [await reranker().rerank(query, candidates(*TEXTS), 5) for query in (QUERY, other)]
    read.clear()
    local = reranker()
    found: dict[str, list[tuple[int, float]]] = {}

    async def ask(query: str) -> None:
        found[query] = await local.rerank(query, candidates(*TEXTS), 5)

    async with anyio.create_task_group() as group:
        group.start_soon(ask, QUERY)
        group.start_soon(ask, other)
    assert [found[QUERY], found[other]] == expected
    assert sorted(read) == sorted([QUERY, other, *TEXTS])


async def test_closing_forgets_and_a_later_call_reads_again(
    reranker: Reranker, candidates: Candidates, read: list[str]
) -> None:
    local = reranker()
    before = await local.rerank(QUERY, candidates(*TEXTS), 5)
    await local.close()
    assert await local.rerank(QUERY, candidates(*TEXTS), 5) == before
    assert read.count(ANSWER) == 2


def test_one_reranker_serves_one_event_loop_after_the_other(reranker: Reranker, candidates: Candidates) -> None:
    local = reranker(cache_mb=0)
    runs = [anyio.run(local.rerank, QUERY, candidates(*TEXTS), 5) for _ in range(2)]
    assert runs[0] == runs[1]
