"""What becomes of a service that refuses, breaks, stalls or says too much."""

import socket
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from haiku.rag.contracts import RerankCandidate
from haiku.rag.errors import RerankError
from haiku.rag.rerankers.http.reranker import HttpReranker
from haiku.rag.testing.rerank_server import RerankAnswer, RerankRequest, RerankServer

pytestmark = pytest.mark.anyio

Make = Callable[..., HttpReranker]

CANDIDATES = [RerankCandidate(text=text, source="a", chunk_id=text) for text in ("one", "two", "three words")]


async def ranked(reranker: HttpReranker) -> list[tuple[int, float]]:
    with anyio.fail_after(20):
        return await reranker.rerank("words", CANDIDATES, 2)


async def refused(reranker: HttpReranker) -> str:
    with pytest.raises(RerankError) as caught:
        await ranked(reranker)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def answering(*answers: RerankAnswer) -> Callable[[RerankRequest], RerankAnswer]:
    """These answers, one after the other, the last for ever."""
    left = list(answers)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


def busy(status: int, after: str | None = "0") -> RerankAnswer:
    return RerankAnswer(
        status=status, body={"detail": "sesame"}, headers={} if after is None else {"retry-after": after}
    )


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "the service answered 400"),
        (401, "the service answered 401: check reranking.model.api_key"),
        (403, "the service answered 403: check reranking.model.api_key"),
        (
            404,
            "the service answered 404: check reranking.model.base_url, reranking.model.name and rerank_http.path",
        ),
        (405, "the service answered 405: check reranking.model.base_url and rerank_http.path"),
        (413, "the service answered 413: lower rerank_http.batch_size or rerank_http.max_chars"),
        (422, "the service answered 422: check reranking.model.name and reranking.model.extra_body"),
        (500, "the service answered 500"),
        (503, "the service answered 503"),
        (599, "the service answered 599"),
    ],
)
async def test_a_status_is_told_and_the_answer_is_not(
    make: Make, server: RerankServer, status: int, reason: str
) -> None:
    server.answer = answering(busy(status))
    assert await refused(make(api_key="sesame")) == reason


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed_with_the_key(make: Make, server: RerankServer, status: int) -> None:
    server.answer = answering(RerankAnswer(status=status, headers={"location": f"{server.url}/elsewhere/rerank"}))
    expected = f"the service answered {status}, a redirect, which is not followed: check reranking.model.base_url"
    assert await refused(make(api_key="sesame")) == expected
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("after", ["0", "0.01", None, "Wed, 21 Oct 2015 07:28:00 GMT"])
async def test_a_request_that_was_put_off_is_repeated(
    make: Make, server: RerankServer, status: int, after: str | None
) -> None:
    reranker = make()
    usual = server.answer
    server.answer = lambda request: busy(status, after) if len(server.requests) == 1 else usual(request)
    assert (await ranked(reranker))[0] == (2, 1.0)
    assert len(server.requests) == 2


@pytest.mark.parametrize(("retries", "requests"), [(0, 1), (1, 2), (3, 4)])
async def test_it_is_repeated_as_often_as_configured(
    make: Make, server: RerankServer, retries: int, requests: int
) -> None:
    server.answer = answering(busy(429))
    assert await refused(make(section={"retries": retries})) == "the service answered 429"
    assert len(server.requests) == requests


async def test_a_wait_longer_than_the_time_is_not_begun(make: Make, server: RerankServer) -> None:
    server.answer = answering(busy(429, "3600"))
    assert await refused(make(timeout_s=5)) == "the service answered 429"
    assert len(server.requests) == 1


async def test_other_failures_are_not_repeated(make: Make, server: RerankServer) -> None:
    server.answer = answering(busy(500))
    await refused(make())
    assert len(server.requests) == 1


async def test_a_refused_connection_is_told_without_the_address(create: Make) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        assert await refused(create(base_url=f"http://127.0.0.1:{port}")) == "the service could not be reached"


async def test_a_connection_that_breaks_off_is_tried_again_and_then_told(make: Make, server: RerankServer) -> None:
    server.answer = answering(RerankAnswer(body=b"half", headers={"content-length": "400", "connection": "close"}))
    assert await refused(make()) == "the connection to the service broke off"
    assert len(server.requests) == 2


async def test_an_answer_that_is_not_http_is_told(create: Make) -> None:
    async def greet(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"SSH-2.0-sesame\r\n")

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, greet)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        assert await refused(create(base_url=f"http://127.0.0.1:{port}")) == "the connection to the service broke off"
        group.cancel_scope.cancel()


async def test_any_other_failure_of_the_request_is_told_by_its_kind(make: Make, server: RerankServer) -> None:
    server.answer = answering(RerankAnswer(body=b"sesame", headers={"content-encoding": "gzip"}))
    assert await refused(make()) == "the request to the service failed (DecodingError)"


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        (lambda entries: entries[:2], "the service returned 2 scores for 3 passages"),
        (lambda entries: [*entries, entries[0]], "the service returned 4 scores for 3 passages"),
        (
            lambda entries: [{**entry, "relevance_score": float("nan")} for entry in entries],
            "the service returned a score that is not a finite number",
        ),
    ],
)
async def test_scores_that_cannot_be_used_are_told(
    make: Make, server: RerankServer, alter: Callable[[Any], Any], reason: str
) -> None:
    server.alter = alter
    assert await refused(make()) == reason


async def test_equal_scores_keep_the_order_in_which_passages_were_offered(make: Make, server: RerankServer) -> None:
    server.alter = lambda entries: [{**entry, "relevance_score": 0.5} for entry in entries]
    assert await ranked(make()) == [(0, 0.5), (1, 0.5), (2, 0.5)]


async def test_an_answer_of_fifty_megabytes_is_not_read(make: Make, server: RerankServer) -> None:
    server.answer = answering(RerankAnswer(body=b"[" + b" " * 50_000_000 + b"]"))
    assert (await refused(make())).startswith("the service's answer is longer than 10")


async def test_an_answer_that_repeats_the_passages_is_read(make: Make, server: RerankServer) -> None:
    text = "橋" * 8000
    server.alter = lambda entries: [{**entry, "document": {"text": text}} for entry in entries]
    candidates = [RerankCandidate(text=text, source="a", chunk_id=str(place)) for place in range(64)]
    assert len(await make().rerank("words", candidates, 1)) == 64


async def test_one_failed_batch_fails_the_whole_and_breaks_off_the_others(make: Make, server: RerankServer) -> None:
    server.answer = answering(busy(401))
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
