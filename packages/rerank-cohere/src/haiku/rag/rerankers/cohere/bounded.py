"""An HTTP client that reads no more than it was told."""

from __future__ import annotations

import re
from typing import Any

import httpx

from haiku.rag.errors import RerankError

POSTPONED = frozenset({429, 503})


class BoundedClient(httpx.AsyncClient):
    """Cohere's client sends its requests through this one.

    An answer above `max_bytes` is an error before it is held whole. So is being asked to wait longer than
    `longest_wait_s`, which the caller would not live to see. Redirects are not followed.
    """

    def __init__(self, *, max_bytes: int, longest_wait_s: float) -> None:
        super().__init__(timeout=httpx.Timeout(None), headers={"Accept-Encoding": "identity"})
        self._max_bytes = max_bytes
        self._longest_wait_s = longest_wait_s

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send the request and read its answer."""
        response = await super().send(request, **{**options, "stream": True})
        try:
            self._refuse_wait(response)
            body = await self._read(response)
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name != "content-encoding"]
        return httpx.Response(response.status_code, headers=headers, content=body, request=request)

    def _refuse_wait(self, response: httpx.Response) -> None:
        asked_for = response.headers.get("retry-after", "")
        seconds = int(asked_for) if re.fullmatch(r"\d{1,9}", asked_for) else 0
        if response.status_code in POSTPONED and seconds >= self._longest_wait_s:
            raise RerankError(f"the service answered {response.status_code}")

    async def _read(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for block in response.aiter_bytes():
            body += block
            if len(body) > self._max_bytes:
                raise RerankError(f"the service's answer is longer than {self._max_bytes} bytes")
        return bytes(body)
