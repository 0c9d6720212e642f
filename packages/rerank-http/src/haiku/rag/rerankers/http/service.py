"""One address that is asked over HTTP: its connections, its limits, and its failures in words."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import anyio
import anyio.to_thread
import httpx

from haiku.rag.errors import RerankError
from haiku.rag.rerankers.http.waiting import wait_of

POSTPONED = frozenset({None, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
BROKEN_OFF = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
PAUSE_S = 0.5
"""The pause before a request is repeated, where the service does not say how long."""

ANSWER_BYTES = 1 << 20
ANSWER_PER_REQUEST_BYTE = 8
"""An answer may hold the passages again, each character escaped."""

BASE_URL = "reranking.model.base_url"
HINTS = {
    401: "check reranking.model.api_key",
    403: "check reranking.model.api_key",
    404: f"check {BASE_URL}, reranking.model.name and rerank_http.path",
    405: f"check {BASE_URL} and rerank_http.path",
    413: "lower rerank_http.batch_size or rerank_http.max_chars",
    422: "check reranking.model.name and reranking.model.extra_body",
}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came of a request: a status, None where the connection broke off, and how long to wait for a better one."""

    status: int | None
    body: bytes = b""
    wait_s: float = 0.0


class Service:
    """What answers at one address. Connections are opened when they are first needed and kept until `close`.

    A redirect is not followed: the key was given for this address. A request that the service puts off (429, 503), or
    whose connection breaks off, is repeated at most `retries` times, and only if the wait that the service asks for
    ends before the deadline. Every failure is a `RerankError` without address, key and answer.
    """

    def __init__(self, *, url: httpx.URL, headers: httpx.Headers, verify: bool | Path, retries: int) -> None:
        self._url = url
        self._headers = headers
        self._verify = verify
        self._retries = retries
        self._client: httpx.AsyncClient | None = None
        self._opening = anyio.Lock()

    async def ask(self, body: bytes, *, deadline: float) -> bytes:
        """Send the body and return that of the answer; `deadline` is on the event loop's clock."""
        for _ in range(self._retries):
            reply = await self._tried(body)
            if reply.status not in POSTPONED or not await _waited(reply.wait_s, deadline):
                return _checked(reply)
        return _checked(await self._tried(body))

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _tried(self, body: bytes) -> Reply:
        try:
            return await self._sent(body)
        except BROKEN_OFF:
            return Reply(status=None, wait_s=0.0)
        except httpx.ConnectError as error:
            reason = _unreachable(error)
        except (httpx.HTTPError, ValueError) as error:
            reason = f"the request to the service failed ({type(error).__name__})"
        # Without its cause, whose text and request hold the address.
        raise RerankError(reason)

    async def _sent(self, body: bytes) -> Reply:
        client = await self._opened()
        async with client.stream("POST", self._url, content=body) as response:
            if not response.is_success:
                wait_s = wait_of(response.headers.get("retry-after", ""))
                return Reply(status=response.status_code, wait_s=PAUSE_S if wait_s is None else wait_s)
            return Reply(status=response.status_code, body=await _bounded(response, len(body)))

    async def _opened(self) -> httpx.AsyncClient:
        async with self._opening:
            if self._client is None:
                verify = self._verify if self._url.scheme == "https" else False
                trusted = await anyio.to_thread.run_sync(_trusted, verify)
                # The time is core's to bound: it knows how much of it the whole search has.
                self._client = httpx.AsyncClient(headers=self._headers, verify=trusted, timeout=httpx.Timeout(None))
            return self._client


def _trusted(verify: bool | Path) -> ssl.SSLContext | bool:
    if isinstance(verify, bool):
        return httpx.create_ssl_context() if verify else False
    try:
        folder = verify.is_dir()
        return ssl.create_default_context(cafile=None if folder else verify, capath=verify if folder else None)
    except OSError:  # ssl.SSLError is one
        pass
    raise RerankError("the certificates of rerank_http.verify could not be read")


async def _bounded(response: httpx.Response, sent: int) -> bytes:
    limit = ANSWER_BYTES + ANSWER_PER_REQUEST_BYTE * sent
    answer = bytearray()
    async for block in response.aiter_bytes():
        answer += block
        if len(answer) > limit:
            raise RerankError(f"the service's answer is longer than {limit} bytes")
    return bytes(answer)


async def _waited(wait_s: float, deadline: float) -> bool:
    """Wait, unless it would take too long."""
    if anyio.current_time() + wait_s >= deadline:
        return False
    await anyio.sleep(wait_s)
    return True


def _checked(reply: Reply) -> bytes:
    status = reply.status
    if status is None:
        raise RerankError("the connection to the service broke off")
    if 200 <= status < 300:
        return reply.body
    if 300 <= status < 400:
        raise RerankError(f"the service answered {status}, a redirect, which is not followed: check {BASE_URL}")
    hint = HINTS.get(status)
    raise RerankError(f"the service answered {status}: {hint}" if hint else f"the service answered {status}")


def _unreachable(error: httpx.ConnectError) -> str:
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error)):
        return "the service's certificate is not trusted: see rerank_http.verify"
    return "the service could not be reached"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
