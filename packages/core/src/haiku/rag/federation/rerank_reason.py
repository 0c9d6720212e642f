"""Why a reranker failed, in words that may be shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from haiku.rag.errors import RerankError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from haiku.rag.config.models import ModelConfig

LONGEST = 200
MASK = "***"


def reason_of(error: Exception, model: ModelConfig) -> str:
    """The sentence of a `RerankError`, on one line and without the configured address and key; else the type's name."""
    text = str(error) if isinstance(error, RerankError) else ""
    plain = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    for secret in sorted(set(_private(model)), key=len, reverse=True):
        plain = re.sub(re.escape(secret), MASK, plain, flags=re.IGNORECASE)
    plain = plain.rstrip(".")
    if len(plain) > LONGEST:
        plain = plain[: LONGEST - 1].rstrip() + "…"
    return plain or type(error).__name__


def _private(model: ModelConfig) -> Iterator[str]:
    """The key, the address, and the part of it that says which host, if that is more than a word."""
    if model.api_key is not None and model.api_key.get_secret_value().strip():
        yield model.api_key.get_secret_value().strip()
    address = (model.base_url or "").strip().rstrip("/")
    if not address:
        return
    yield address
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        host = parts.hostname or ""
    except ValueError:
        return
    yield from (part for part in (parts.netloc, parts.netloc.rpartition("@")[2], host) if re.search(r"[.:]", part))
