"""A reranking service on the loopback: the `/rerank` shapes, scored by the words that passage and query share."""

from __future__ import annotations

import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from haiku.rag.testing.words import words

Entries = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class RerankRequest:
    """A request as it came in. `headers` have lower-case names."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class RerankAnswer:
    """What is sent back: `body` as it is, or as JSON where it is not bytes."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class RerankServer(ThreadingHTTPServer):
    """A server for the length of a `with` block; `url` is its address.

    It reads `texts` or `documents` and answers as services do: a list of `{index, score}` to the one, an object with
    `results` of `{index, relevance_score}` to the other, best first. `requests` is what came in, over `connections`.
    `answer` replaces the answer to a request; `alter` changes the entries of the usual one. While `hold` is set,
    requests wait until it is cleared or the caller hangs up, which sets `hung_up`.
    """

    daemon_threads = True

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server_port}"
        self.requests: list[RerankRequest] = []
        self.connections: list[Any] = []
        self.answer: Callable[[RerankRequest], RerankAnswer] = self.scored
        self.alter: Callable[[Entries], Any] = list
        self.hold = threading.Event()
        self.arrived = threading.Event()
        self.hung_up = threading.Event()
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.hold.clear()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: tests break connections on purpose."""

    def scored(self, request: RerankRequest) -> RerankAnswer:
        """The usual answer: each passage's share of the query's words."""
        bare = "texts" in request.body
        wanted = set(words(request.body["query"]))
        passages = request.body["texts" if bare else "documents"]
        shares = [len(wanted & set(words(passage))) / max(len(wanted), 1) for passage in passages]
        entries = [
            {"index": index, "score" if bare else "relevance_score": shares[index]}
            for index in sorted(range(len(shares)), key=lambda index: -shares[index])
        ]
        altered = self.alter(entries)
        return RerankAnswer(body=altered if bare else {"model": request.body.get("model"), "results": altered})


class _Handler(BaseHTTPRequestHandler):
    server: RerankServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.connections.append(self.client_address)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = RerankRequest(path=self.path, headers=headers, body=body)
        self.server.requests.append(request)
        self.server.arrived.set()
        if not self._held():
            self._send(self.server.answer(request))

    def _held(self) -> bool:
        """Wait as long as the server says; whether the caller went away meanwhile."""
        while self.server.hold.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.01)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                self.server.hung_up.set()
                self.close_connection = True
                return True
        return False

    def _send(self, answer: RerankAnswer) -> None:
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {
            "content-type": "application/json",
            "content-length": str(len(body)),
            **answer.headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Keep the test run's output clean."""
