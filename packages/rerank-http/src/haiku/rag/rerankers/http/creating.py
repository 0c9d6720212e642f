"""The factories: a reranker from the configuration, which is checked here."""

import json
from collections.abc import Mapping
from typing import Any

import httpx

from haiku.rag.config import AppConfig
from haiku.rag.config.models import ModelConfig
from haiku.rag.errors import ConfigError
from haiku.rag.rerankers.http.protocols import HTTP, JINA, TEI, VLLM, ZEROENTROPY, Protocol
from haiku.rag.rerankers.http.reranker import HttpReranker
from haiku.rag.rerankers.http.service import Service
from haiku.rag.rerankers.http.settings import RerankHttpSettings, fits_a_header

LAST_PORT = 65_535


def create_http(config: AppConfig) -> HttpReranker:
    """The factory of `http`."""
    return _created(config, HTTP)


def create_jina(config: AppConfig) -> HttpReranker:
    """The factory of `jina`."""
    return _created(config, JINA)


def create_vllm(config: AppConfig) -> HttpReranker:
    """The factory of `vllm`."""
    return _created(config, VLLM)


def create_tei(config: AppConfig) -> HttpReranker:
    """The factory of `tei`."""
    return _created(config, TEI)


def create_zeroentropy(config: AppConfig) -> HttpReranker:
    """The factory of `zeroentropy`."""
    return _created(config, ZEROENTROPY)


def _created(config: AppConfig, protocol: Protocol) -> HttpReranker:
    model = config.reranking.model
    assert model is not None
    settings: RerankHttpSettings = config.section("rerank_http")
    _refuse_unused(model)
    verify = settings.verify
    service = Service(
        url=_address(model, protocol, settings.path),
        headers=_headers(model, protocol, settings),
        verify=verify if isinstance(verify, bool) else config.resolve_path(verify),
        retries=settings.retries,
    )
    return HttpReranker(
        service=service,
        protocol=protocol,
        model=model.name.strip() or protocol.model,
        extra=_extra(model, protocol),
        settings=settings,
        timeout_s=config.reranking.timeout_s,
    )


def _refuse_unused(model: ModelConfig) -> None:
    for key in ("temperature", "thinking", "max_tokens"):
        if getattr(model, key) is not None:
            raise ConfigError(
                f"reranking.model.{key} means nothing to the reranker '{model.provider}'. Remove it; what its service "
                "knows more than that goes into reranking.model.extra_body."
            )


def _address(model: ModelConfig, protocol: Protocol, path: str | None) -> httpx.URL:
    given = (model.base_url or "").strip() or protocol.url
    if given is None:
        raise ConfigError(
            f"reranker '{model.provider}' needs to know where its service is. Set reranking.model.base_url."
        )
    try:
        url = httpx.URL(given)
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > LAST_PORT:
        raise ConfigError(
            "reranking.model.base_url is not an address of the form http://HOST or https://HOST. Correct it."
        )
    before, after = url.path.rstrip("/"), (path or protocol.path).strip("/")
    return url if before.endswith(f"/{after}") else url.copy_with(path=f"{before}/{after}")


def _headers(model: ModelConfig, protocol: Protocol, settings: RerankHttpSettings) -> httpx.Headers:
    key = "" if model.api_key is None else model.api_key.get_secret_value().strip()
    if not key and not settings.headers and not model.base_url and protocol.url is not None:
        raise ConfigError(f"reranker '{model.provider}' needs a key. Set reranking.model.api_key.")
    if not fits_a_header(key):
        raise ConfigError("reranking.model.api_key holds characters that no HTTP header can carry. Correct it.")
    headers = httpx.Headers(
        {
            "User-Agent": "haiku-rag",
            "Accept": "application/json",
            "Content-Type": "application/json",
            # An answer's size is checked as it comes in, so it has to come unpacked.
            "Accept-Encoding": "identity",
        }
    )
    if key:
        headers["Authorization"] = f"Bearer {key}"
    headers.update({name: secret.get_secret_value() for name, secret in settings.headers.items()})
    return headers


def _extra(model: ModelConfig, protocol: Protocol) -> Mapping[str, Any]:
    taken = sorted(protocol.reserved & model.extra_body.keys())
    if taken:
        raise ConfigError(f"reranking.model.extra_body must not set '{taken[0]}', which the request needs. Remove it.")
    try:
        json.dumps(model.extra_body, allow_nan=False)
    except (TypeError, ValueError):
        plain = False
    else:
        plain = True
    if not plain:
        raise ConfigError("reranking.model.extra_body holds a value that JSON does not have. Correct it.")
    return model.extra_body
