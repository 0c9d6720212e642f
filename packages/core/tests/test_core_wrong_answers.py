"""Plugins whose hooks return what they must not: each is named, and none is taken at its word."""

from typing import Any

import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.errors import PluginError
from haiku.rag.plugins import hookimpl
from haiku.rag.testing import plugin as memory_plugin
from haiku.rag.testing import testing_config, testing_plugin

pytestmark = pytest.mark.anyio


class Scope:
    @hookimpl
    def haiku_rag_resolve_scope(self, config: Any, selector: Any) -> Any:
        return 7


class Plan:
    @hookimpl
    def haiku_rag_plan_federation(self, scope: Any, request: Any) -> Any:
        return "plan"


class Before:
    @hookimpl
    def haiku_rag_before_search(self, request: Any, options: Any) -> Any:
        return "another query"


class After:
    @hookimpl
    def haiku_rag_after_search(self, request: Any, results: Any, options: Any) -> Any:
        return list(results)


class Ingest:
    @hookimpl
    def haiku_rag_before_ingest(self, document: Any, options: Any) -> Any:
        return {"content": "text"}


class Lifespan:
    @hookimpl
    def haiku_rag_lifespan(self, client: Any) -> Any:
        return 3


@pytest.mark.parametrize(
    ("plugin", "what"),
    [
        (Scope, "a int from haiku_rag_resolve_scope, and must return DatabaseScope or None."),
        (Plan, "a str from haiku_rag_plan_federation, and must return SearchPlan or None."),
        (Before, "a str from haiku_rag_before_search, and must return SearchRequest or None."),
        (After, "a list from haiku_rag_after_search, and must return SearchResults or None."),
        (Ingest, "a dict from haiku_rag_before_ingest, and must return DocumentImport or None."),
        (Lifespan, "a int from haiku_rag_lifespan, and must return AbstractAsyncContextManager or None."),
    ],
)
async def test_a_hook_that_returns_something_else_is_told_with_the_plugins_name(plugin: Any, what: str) -> None:
    data = {
        "memory": {"server": plugin.__name__, "databases": {"a": "memory://a"}},
        "embeddings": {"model": {"provider": "hash"}},
        "hooks": ["acme"],
    }
    config = testing_config(data, memory_plugin, testing_plugin(plugin(), name="acme", distribution="acme-x"))

    async def use() -> None:
        async with HaikuRAG(config=config, create=True) as client:
            await client.search("text")
            await client.create_document("text")

    with pytest.raises(PluginError) as caught:
        await use()
    assert str(caught.value).startswith("plugin 'acme' (acme-x ")
    assert str(caught.value).endswith(f"returned {what}")
