"""Documents by URL."""

import ssl
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
import httpx

from haiku.rag.config import AppConfig
from haiku.rag.contracts import SourceContent
from haiku.rag.errors import UnsupportedSourceError
from haiku.rag.models.text import shown_address

USER_AGENT = "haiku-rag"
MAX_REDIRECTS = 5
TIMEOUT_S = 30.0
DEADLINE_S = 300.0
# What servers say when they do not know: the name's suffix tells more.
VAGUE_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/unknown"})


class HttpSource:
    """One document by its http or https URL.

    `timeout_s` bounds each wait for the server, `deadline_s` the whole, and `max_bytes` the body as it is unpacked.
    """

    def __init__(self, *, max_bytes: int, timeout_s: float = TIMEOUT_S, deadline_s: float = DEADLINE_S) -> None:
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._tls: ssl.SSLContext | None = None

    async def discover(self, location: str) -> AsyncIterator[str]:
        """The URL itself: links are not followed."""
        yield location

    async def fetch(self, uri: str) -> SourceContent:
        """The document's bytes, media type and charset. `UnsupportedSourceError` where they cannot be had."""
        try:
            with anyio.fail_after(self._deadline_s):
                return await self._fetch(uri)
        except UnsupportedSourceError:
            raise
        except TimeoutError:
            reason = f"was not received whole within {self._deadline_s:g} s"
        except httpx.TimeoutException:
            reason = f"did not answer within {self._timeout_s:g} s"
        except httpx.TooManyRedirects:
            reason = f"redirects more than {MAX_REDIRECTS} times"
        except httpx.ConnectError:
            reason = "could not be reached"
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, ExceptionGroup) as error:  # a group: no such port
            reason = f"could not be read ({type(error).__name__})"
        # The cause stays out: its text and its request hold the whole URL.
        raise UnsupportedSourceError(f"'{shown_address(uri)}' {reason}. Check the address and the network.") from None

    async def _fetch(self, uri: str) -> SourceContent:
        if self._tls is None:
            self._tls = await anyio.to_thread.run_sync(httpx.create_ssl_context)
        async with (
            httpx.AsyncClient(
                follow_redirects=True,
                max_redirects=MAX_REDIRECTS,
                timeout=self._timeout_s,
                headers={"User-Agent": USER_AGENT},
                verify=self._tls,
            ) as client,
            client.stream("GET", uri) as response,
        ):
            if not response.is_success:
                answer = _status(response.status_code)
                raise UnsupportedSourceError(f"'{shown_address(uri)}' answered {answer}. Check the address.")
            data = await self._body(response, uri)
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return SourceContent(
            uri=_without_user(uri),
            name=_name(str(response.url), media_type),
            data=data,
            media_type=None if media_type in VAGUE_TYPES else media_type,
            encoding=response.charset_encoding,
        )

    async def _body(self, response: httpx.Response, uri: str) -> bytes:
        body = bytearray()
        async for block in response.aiter_bytes():
            body += block
            if len(body) > self._max_bytes:
                limit = f"{self._max_bytes} bytes, the limit processing.max_file_bytes"
                raise UnsupportedSourceError(f"'{shown_address(uri)}' is larger than {limit}. Raise it to read this.")
        return bytes(body)


def http_source(config: AppConfig) -> HttpSource:
    """The factory that the record names."""
    return HttpSource(max_bytes=config.processing.max_file_bytes)


def _without_user(uri: str) -> str:
    """The URL as a document's key: no password is stored."""
    parts = urlsplit(uri)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _status(code: int) -> str:
    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return str(code)


def _name(url: str, media_type: str) -> str:
    """The file name in a URL's path; `index.html`, or the host, where the path ends in a folder."""
    parts = urlsplit(url)
    name = "".join(filter(str.isprintable, PurePosixPath(unquote(parts.path)).name))
    if name and not parts.path.endswith("/"):
        return name
    return "index.html" if media_type in ("text/html", "application/xhtml+xml") else name or parts.hostname or url
