"""Documents by URL, from a real server on this machine."""

import gzip
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from haiku.rag.config import AppConfig
from haiku.rag.converters.documents.http import HttpSource, http_source
from haiku.rag.errors import UnsupportedSourceError

pytestmark = pytest.mark.anyio


class Server(ThreadingHTTPServer):
    """Keeps each request's headers, and holds back what is slow until it is released."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[dict[str, str]] = []
        self.released = threading.Event()


class Handler(BaseHTTPRequestHandler):
    """Answers by path."""

    server: Server

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.server.seen.append(dict(self.headers))
        if path.startswith("/hop/"):
            left = int(path.rpartition("/")[2])
            return self._send(302, location=f"/hop/{left - 1}" if left > 1 else "/docs/final%20page.html")
        if path == "/elsewhere":
            return self._send(301, location="ftp://127.0.0.1/file")
        if path in ("/drip", "/silent"):
            return self._drip() if path == "/drip" else self._wait()
        if path == "/packed.txt":
            return self._send(200, gzip.compress(b"a" * 100_000), "text/plain", **{"content-encoding": "gzip"})
        if path == "/torn":
            return self._send(200, b"half", "text/plain", **{"content-length": "400"})
        status = {"/gone": 404, "/odd": 599, "/cached": 304}.get(path, 200)
        kind = {"/blob.pdf": "application/octet-stream", "/plain": "Text/Plain; charset=Shift_JIS"}.get(
            path, "text/html"
        )
        return self._send(status, "表".encode("shift_jis") if path == "/plain" else b"<p>body</p>", kind)

    def _send(self, status: int, body: bytes = b"", kind: str = "text/html", **headers: str) -> None:
        self.send_response(status)
        headers = {"content-type": kind, "content-length": str(len(body)), **headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _wait(self) -> None:
        self.server.released.wait(10)

    def _drip(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            while not self.server.released.wait(0.02):
                self.wfile.write(b"x")
        except OSError:
            return

    def log_message(self, *_args: object) -> None:
        """Keep the test run's output clean."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.released.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def url(server):
    return f"http://127.0.0.1:{server.server_port}"


async def refused(uri: str, **bounds: Any) -> str:
    with pytest.raises(UnsupportedSourceError) as caught:
        await HttpSource(**{"max_bytes": 1000, **bounds}).fetch(uri)
    return str(caught.value)


async def test_a_document_comes_with_its_type_charset_and_name(url):
    content = await HttpSource(max_bytes=1000).fetch(f"{url}/plain")
    assert (content.uri, content.name, content.media_type) == (f"{url}/plain", "plain", "text/plain")
    assert content.encoding is not None
    assert (content.data.decode(content.encoding), content.encoding.lower()) == ("表", "shift_jis")


async def test_the_user_agent_names_haiku_rag(url, server):
    await HttpSource(max_bytes=1000).fetch(url)
    assert server.seen[0]["User-Agent"].startswith("haiku-rag")


async def test_a_vague_type_leaves_the_name_to_tell(url):
    content = await HttpSource(max_bytes=1000).fetch(f"{url}/blob.pdf?version=2")
    assert (content.name, content.media_type) == ("blob.pdf", None)


@pytest.mark.parametrize("path", ["", "/", "/folder/"])
async def test_a_page_of_a_folder_is_its_index(url, path):
    assert (await HttpSource(max_bytes=1000).fetch(url + path)).name == "index.html"


async def test_redirects_are_followed_and_the_address_stays_the_one_asked_for(url):
    content = await HttpSource(max_bytes=1000).fetch(f"{url}/hop/5")
    assert (content.uri, content.name) == (f"{url}/hop/5", "final page.html")


async def test_more_than_five_redirects_are_too_many(url):
    assert "redirects more than 5 times" in await refused(f"{url}/hop/6")


async def test_a_redirect_to_another_scheme_is_refused(url):
    assert "could not be read (UnsupportedProtocol)" in await refused(f"{url}/elsewhere")


@pytest.mark.parametrize(
    ("path", "answer"), [("/gone", "404 Not Found"), ("/odd", "599"), ("/cached", "304 Not Modified")]
)
async def test_a_status_that_is_no_success_is_told(url, path, answer):
    assert await refused(f"{url}{path}") == f"'{url}{path}' answered {answer}. Check the address."


async def test_messages_hold_no_user_password_or_query(url):
    address = url.replace("//", "//user:hunter2@") + "/gone?token=sesame#part"
    assert await refused(address) == f"'{url}/gone' answered 404 Not Found. Check the address."


@pytest.mark.parametrize("path", ["/page.html", "/packed.txt"])
async def test_a_body_past_the_limit_is_refused_however_it_is_packed(url, path):
    message = await refused(f"{url}{path}", max_bytes=5)
    assert "is larger than 5 bytes, the limit processing.max_file_bytes." in message


async def test_a_body_that_never_ends_is_given_up_at_the_deadline(url):
    assert "was not received whole within 0.3 s" in await refused(f"{url}/drip", deadline_s=0.3)


async def test_a_server_that_says_nothing_is_given_up(url):
    assert "did not answer within 0.2 s" in await refused(f"{url}/silent", timeout_s=0.2)


async def test_a_body_cut_short_is_refused(url):
    assert "could not be read (RemoteProtocolError)" in await refused(f"{url}/torn")


async def test_a_refused_connection_is_told():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/x"
        assert await refused(address) == f"'{address}' could not be reached. Check the address and the network."


@pytest.mark.parametrize(
    "address",
    [
        "http://[broken/secret",
        "http://",
        "http://user:pw@127.0.0.1:notaport/x",
        "http://user:pw@127.0.0.1:99999/x",
        "http://\udc80/",
    ],
)
async def test_an_address_that_is_none_is_refused_without_its_secrets(address):
    message = await refused(address)
    assert "could not be" in message
    assert "secret" not in message
    assert "pw" not in message


async def test_discovery_yields_the_address_itself(url):
    assert [uri async for uri in HttpSource(max_bytes=1).discover(url)] == [url]


async def test_the_configuration_sets_the_limit(url):
    source = http_source(AppConfig.model_validate({"processing": {"max_file_bytes": 5}}))
    with pytest.raises(UnsupportedSourceError, match="larger than 5 bytes"):
        await source.fetch(url)
