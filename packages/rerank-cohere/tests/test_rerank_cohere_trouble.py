"""What becomes of Cohere refusing, breaking, stalling or saying too much."""

import logging
import socket
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from haiku.rag.contracts import RerankCandidate
from haiku.rag.errors import RerankError
from haiku.rag.rerankers.cohere.reranker import CohereReranker
from haiku.rag.testing.rerank_server import RerankAnswer, RerankRequest, RerankServer

pytestmark = pytest.mark.anyio

Make = Callable[..., CohereReranker]
CANDIDATES = [RerankCandidate(text=text, source="a", chunk_id=text) for text in ("one", "two", "three words")]
ONCE = {"retries": 0}


async def ranked(reranker: CohereReranker) -> list[tuple[int, float]]:
    with anyio.fail_after(20):
        return await reranker.rerank("words", CANDIDATES, 2)


async def refused(reranker: CohereReranker) -> str:
    with pytest.raises(RerankError) as caught:
        await ranked(reranker)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


def always(answer: RerankAnswer) -> Callable[[RerankRequest], RerankAnswer]:
    return lambda _request: answer


def busy(status: int, **headers: str) -> RerankAnswer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RerankAnswer(status=status, body={"message": "sesame"}, headers=named)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "the service answered 400: check reranking.model.name and the section rerank_cohere"),
        (401, "the service answered 401: check reranking.model.api_key"),
        (403, "the service answered 403: check reranking.model.api_key"),
        (404, "the service answered 404: check reranking.model.name and reranking.model.base_url"),
        (418, "the service answered 418"),
        (422, "the service answered 422: check reranking.model.name and the section rerank_cohere"),
        (429, "the service answered 429"),
        (498, "the service answered 498: check reranking.model.api_key"),
        (500, "the service answered 500"),
        (503, "the service answered 503"),
    ],
)
async def test_a_status_is_told_and_the_answer_is_not(
    make: Make, server: RerankServer, status: int, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="cohere")
    server.answer = always(busy(status))
    assert await refused(make(section=ONCE)) == reason
    assert "sesame" not in caplog.text


@pytest.mark.parametrize("status", [301, 307])
async def test_a_redirect_is_not_followed_with_the_key(make: Make, server: RerankServer, status: int) -> None:
    server.answer = always(RerankAnswer(status=status, headers={"location": f"{server.url}/elsewhere/rerank"}))
    expected = f"the service answered {status}, a redirect, which is not followed: check reranking.model.base_url"
    assert await refused(make()) == expected
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_a_request_that_was_put_off_is_repeated(make: Make, server: RerankServer, status: int) -> None:
    usual = server.answer
    postponed = busy(status, retry_after_ms="5")
    server.answer = lambda request: postponed if len(server.requests) == 1 else usual(request)
    assert (await ranked(make()))[0] == (2, 1.0)
    assert len(server.requests) == 2


async def test_it_is_repeated_as_often_as_configured(make: Make, server: RerankServer) -> None:
    server.answer = always(busy(429, retry_after_ms="5"))
    assert await refused(make(section={"retries": 2})) == "the service answered 429"
    assert len(server.requests) == 3


async def test_a_wait_longer_than_the_time_is_not_begun(make: Make, server: RerankServer) -> None:
    server.answer = always(busy(429, retry_after="3600"))
    assert await refused(make(timeout_s=5)) == "the service answered 429"
    assert len(server.requests) == 1


async def test_a_refused_connection_is_told_without_the_address(make: Make) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
        assert await refused(make(base_url=address, section=ONCE)) == "the service could not be reached"


async def test_a_connection_that_breaks_off_is_told(make: Make, server: RerankServer) -> None:
    server.answer = always(RerankAnswer(body=b"half", headers={"content-length": "400", "connection": "close"}))
    assert await refused(make()) == "the connection to the service broke off"


async def test_any_other_failure_of_the_request_is_told_by_its_kind(make: Make, server: RerankServer) -> None:
    server.answer = always(RerankAnswer(body=b"sesame", headers={"content-encoding": "gzip"}))
    assert await refused(make()) == "the request to the service failed (DecodingError)"


async def test_an_answer_of_fifty_megabytes_is_not_read(make: Make, server: RerankServer) -> None:
    server.answer = always(RerankAnswer(body=b"[" + b" " * 50_000_000 + b"]"))
    assert await refused(make()) == "the service's answer is longer than 1048576 bytes"


NO_NUMBER = "the service returned a score that is not a number from 0 to 1"
NOT_SENT = "the service returned a score for a passage that was not sent"


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        (lambda entries: entries[:2], "the service returned 2 scores for 3 passages"),
        (lambda entries: [*entries, entries[0]], "the service returned 4 scores for 3 passages"),
        (lambda entries: [*entries[:2], entries[0]], "the service returned two scores for one passage"),
        (lambda entries: [{**entry, "index": 7} for entry in entries], NOT_SENT),
        (lambda entries: [{**entry, "index": -1} for entry in entries], NOT_SENT),
        (lambda entries: [{**entry, "index": "first"} for entry in entries], NOT_SENT),
        (lambda entries: [{"relevance_score": 0.5} for _ in entries], NOT_SENT),
        (lambda entries: [{**entry, "relevance_score": float("nan")} for entry in entries], NO_NUMBER),
        (lambda entries: [{**entry, "relevance_score": 10**400} for entry in entries], NO_NUMBER),
        (lambda entries: [{**entry, "relevance_score": "0.5"} for entry in entries], NO_NUMBER),
        (lambda entries: [{**entry, "relevance_score": True} for entry in entries], NO_NUMBER),
        (lambda entries: [{"index": entry["index"]} for entry in entries], NO_NUMBER),
        (lambda entries: [1, 2, 3], "the service's answer cannot be read"),
        (lambda entries: {"a": 1}, "the service's answer holds no list of scores"),
        (lambda entries: None, "the service's answer holds no list of scores"),
    ],
)
async def test_scores_that_cannot_be_used_are_told(
    make: Make, server: RerankServer, alter: Callable[[Any], Any], reason: str
) -> None:
    server.alter = alter
    assert await refused(make()) == reason


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>sesame</html>", "the service's answer is not JSON"),
        (b"", "the service's answer is not JSON"),
        (b"[" * 100_000, "the service's answer cannot be read"),
        (b"[1]", "the service's answer cannot be read"),
        (b"null", "the service's answer cannot be read"),
        (b'{"detail": "sesame"}', "the service's answer holds no list of scores"),
    ],
)
async def test_garbage_is_told(make: Make, server: RerankServer, body: bytes, reason: str) -> None:
    server.answer = always(RerankAnswer(body=body))
    assert await refused(make()) == reason


async def test_equal_scores_keep_the_order_in_which_passages_were_offered(make: Make, server: RerankServer) -> None:
    server.alter = lambda entries: [{**entry, "relevance_score": 0.5} for entry in entries]
    assert await ranked(make()) == [(0, 0.5), (1, 0.5), (2, 0.5)]


async def test_one_failed_batch_fails_the_whole_and_breaks_off_the_others(make: Make, server: RerankServer) -> None:
    server.answer = always(busy(401))
    reranker = make(section={"batch_size": 1, "concurrency": 1})
    assert (await refused(reranker)).startswith("the service answered 401")
    assert len(server.requests) == 1


async def test_cancelling_closes_the_connection(make: Make, server: RerankServer) -> None:
    server.hold.set()
    async with anyio.create_task_group() as group:
        group.start_soon(ranked, make())
        assert await anyio.to_thread.run_sync(server.arrived.wait, 10)
        group.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(server.hung_up.wait, 10)
