"""What went wrong in Cohere's client, in words that hold no address, key or answer."""

import httpx

from cohere.core.api_error import ApiError
from cohere.core.parse_error import ParsingError
from haiku.rag.errors import RerankError

HINTS = {
    400: "check reranking.model.name and the section rerank_cohere",
    401: "check reranking.model.api_key",
    403: "check reranking.model.api_key",
    404: "check reranking.model.name and reranking.model.base_url",
    422: "check reranking.model.name and the section rerank_cohere",
    498: "check reranking.model.api_key",
}
UNREADABLE = (ParsingError, TypeError, AttributeError, RecursionError)
"""What Cohere's client raises on JSON that it did not expect."""

FAILURES = (ApiError, httpx.HTTPError, ValueError, *UNREADABLE)


def failure(error: Exception) -> RerankError:
    """The error that is raised in place of one of `FAILURES`."""
    return RerankError(_reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, ApiError):
        return _status(error.status_code or 0)
    if isinstance(error, UNREADABLE):
        return "the service's answer cannot be read"
    if isinstance(error, httpx.ConnectError):
        return "the service could not be reached"
    if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError):
        return "the connection to the service broke off"
    return f"the request to the service failed ({type(error).__name__})"


def _status(status: int) -> str:
    if 200 <= status < 300:
        return "the service's answer is not JSON"
    if 300 <= status < 400:
        return f"the service answered {status}, a redirect, which is not followed: check reranking.model.base_url"
    hint = HINTS.get(status)
    return f"the service answered {status}: {hint}" if hint else f"the service answered {status}"
