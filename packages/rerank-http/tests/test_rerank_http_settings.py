"""What the configuration may say, and what it is told when it says something else."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from haiku.rag.config import AppConfig
from haiku.rag.errors import ConfigError
from haiku.rag.plugins import ConfigSectionRecord
from haiku.rag.rerankers.http import plugin
from haiku.rag.rerankers.http.reranker import HttpReranker

Make = Callable[..., HttpReranker]

REMOVE = "Remove it; what its service knows more than that goes into reranking.model.extra_body."


@pytest.mark.parametrize(
    ("provider", "given", "message"),
    [
        ("http", {}, "reranker 'http' needs to know where its service is. Set reranking.model.base_url."),
        (
            "vllm",
            {"base_url": " "},
            "reranker 'vllm' needs to know where its service is. Set reranking.model.base_url.",
        ),
        ("tei", {}, "reranker 'tei' needs to know where its service is. Set reranking.model.base_url."),
        ("jina", {}, "reranker 'jina' needs a key. Set reranking.model.api_key."),
        ("zeroentropy", {"api_key": " "}, "reranker 'zeroentropy' needs a key. Set reranking.model.api_key."),
        (
            "jina",
            {"api_key": "k", "max_tokens": 512},
            f"reranking.model.max_tokens means nothing to the reranker 'jina'. {REMOVE}",
        ),
        (
            "jina",
            {"api_key": "sésame"},
            "reranking.model.api_key holds characters that no HTTP header can carry. Correct it.",
        ),
        (
            "jina",
            {"api_key": "k", "extra_body": {"documents": []}},
            "reranking.model.extra_body must not set 'documents', which the request needs. Remove it.",
        ),
        (
            "jina",
            {"api_key": "k", "extra_body": {"x": float("nan")}},
            "reranking.model.extra_body holds a value that JSON does not have. Correct it.",
        ),
        (
            "jina",
            {"api_key": "k", "extra_body": {"x": {1, 2}}},
            "reranking.model.extra_body holds a value that JSON does not have. Correct it.",
        ),
    ],
)
def test_what_cannot_work_is_refused_when_the_reranker_is_made(
    create: Make, provider: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        create(provider, **given)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "address",
    [
        "secret.example",
        "ftp://secret.example",
        "http://",
        "http://secret\x01",
        "http://secret:port",
        "http://secret:99999",
    ],
)
def test_an_address_that_is_none_is_refused_without_being_told(create: Make, address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create(base_url=address)
    expected = "reranking.model.base_url is not an address of the form http://HOST or https://HOST. Correct it."
    assert str(caught.value) == expected


def test_a_header_of_the_configuration_may_stand_for_the_key(create: Make) -> None:
    create("jina", section={"headers": {"Authorization": "Key other"}})


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"headers": {"no name": "x"}}, "rerank_http.headers"),
        ({"headers": {"X-Key": "two\nlines sesame"}}, "rerank_http.headers"),
        ({"headers": {"Content-Length": "1"}}, "rerank_http.headers"),
        ({"scale": [1, 0]}, "rerank_http.scale"),
        ({"scale": "logits"}, "rerank_http.scale"),
        ({"batch_size": 0}, "rerank_http.batch_size"),
        ({"batchsize": 3}, "rerank_http.batchsize"),
    ],
)
def test_a_setting_that_means_nothing_is_refused_by_its_path(
    configured: Callable[..., AppConfig], section: dict[str, Any], key: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        configured(section=section)
    assert key in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_the_values_of_headers_are_secret(configured: Callable[..., AppConfig]) -> None:
    config = configured(section={"headers": {"X-Key": "sesame"}})
    assert "sesame" not in repr(config.section("rerank_http"))
    (record,) = config.kernel.records(ConfigSectionRecord)
    assert record.secrets == ("headers",)


def test_every_reranker_says_how_to_install_what_it_needs() -> None:
    records = list(plugin.haiku_rag_register_reranker())
    assert [record.name for record in records] == ["http", "jina", "vllm", "tei", "zeroentropy"]
    assert {(record.extra, record.needs) for record in records} == {("rerank-http", "httpx")}
