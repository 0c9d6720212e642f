"""The section `rerank_http`."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from haiku.rag.config.models import Finite
from haiku.rag.config.section import NonBlank, Section

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN = frozenset({"connection", "content-encoding", "content-length", "content-type", "transfer-encoding"})
_CARRIED = re.compile(r"[\x20-\x7e\t]*")

Scale = tuple[Finite, Finite]


def fits_a_header(value: str) -> bool:
    """Whether an HTTP header can carry the value: printable ASCII."""
    return _CARRIED.fullmatch(value) is not None


def _headers(value: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name, secret in value.items():
        if _TOKEN.fullmatch(name) is None or not fits_a_header(secret.get_secret_value()):
            raise PydanticCustomError("header", "must hold names and values that an HTTP header can carry")
        if name.lower() in _OWN:
            raise PydanticCustomError(
                "own_header", "must not hold '{name}', which the request says itself", {"name": name}
            )
    return value


def _rising(value: Scale) -> Scale:
    if value[0] >= value[1]:
        raise PydanticCustomError("scale", "must be the lowest score and a higher one")
    return value


class RerankHttpSettings(Section):
    """How passages are sent, for every reranker of this package. None means what the provider's protocol suggests.

    `batch_size` passages go into one request and `concurrency` requests are under way at once; of a passage the first
    `max_chars` characters are sent. `path` is put behind `reranking.model.base_url`. `retries` is how often a request
    is repeated that the service put off. `scale` is the lowest and the highest score, or `unbounded`. `verify` is
    false, or the certificates to trust.
    """

    batch_size: Annotated[int, Field(gt=0, le=10_000)] | None = None
    concurrency: Annotated[int, Field(gt=0, le=64)] = 4
    max_chars: Annotated[int, Field(gt=0)] = 8000
    path: NonBlank | None = None
    headers: Annotated[dict[str, SecretStr], AfterValidator(_headers)] = Field(default_factory=dict)
    retries: Annotated[int, Field(ge=0, le=5)] = 1
    scale: Annotated[Scale, AfterValidator(_rising)] | Literal["unbounded"] | None = None
    verify: bool | NonBlank = True
