"""The records, the section, and what of `reranking.model` is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from haiku.rag.config import AppConfig
from haiku.rag.errors import ConfigError
from haiku.rag.plugins import ConfigSectionRecord, RerankerRecord
from haiku.rag.rerankers.local import plugin
from haiku.rag.rerankers.local.reranker import LocalReranker, create_local
from haiku.rag.rerankers.local.settings import RerankLocalSettings
from haiku.rag.testing import testing_config, testing_kernel


def config(model: dict[str, Any] | None = None, **sections: Any) -> AppConfig:
    reranking = {"model": {"provider": "local", **(model or {})}}
    return testing_config({"reranking": reranking, **sections}, plugin)


def test_the_plugin_offers_a_reranker_and_its_section() -> None:
    kernel = testing_kernel(plugin)
    assert kernel.resolve(RerankerRecord.kind, "local") is create_local
    assert kernel.resolve(ConfigSectionRecord.kind, "rerank_local") is RerankLocalSettings


def test_it_works_without_settings() -> None:
    assert isinstance(create_local(config({"name": "all-MiniLM-L6-v2"})), LocalReranker)
    assert isinstance(create_local(testing_config({}, plugin)), LocalReranker)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"name": "bge"}, "has one model, 'all-MiniLM-L6-v2', and not 'bge'"),
        ({"base_url": "http://localhost"}, "runs in this process and asks no service"),
        ({"api_key": "k"}, "runs in this process and asks no service"),
    ],
)
def test_what_it_cannot_follow_is_refused(model: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create_local(config(model))


@pytest.mark.parametrize("key", ["max_candidates", "max_tokens", "cache_mb"])
def test_a_negative_bound_is_refused(key: str) -> None:
    with pytest.raises(ValidationError, match=f"rerank_local.{key}"):
        config(rerank_local={key: -1})
