"""The loading loop: one plugin that is at fault costs that plugin only."""

from collections.abc import AsyncIterator, Callable, Iterable
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from haiku.rag.plugins import FusionRecord, PluginRecord, StorageRecord, hookimpl
from haiku.rag.plugins.loading import Plugin, collect, load_plugins

Write = Callable[[str, str], EntryPoint]

GOOD = """
from haiku.rag.plugins import FusionRecord, hookimpl

@hookimpl
def haiku_rag_register_fusion():
    yield FusionRecord(name="good", summary="s", factory="nowhere:made")
"""


def one(entry: EntryPoint, **options: Any) -> Plugin:
    (plugin,) = load_plugins(entries=[entry], **options)
    return plugin


def test_a_plugin_is_loaded_with_its_records(module: Write) -> None:
    plugin = one(module("good_one", GOOD))
    assert (plugin.status, plugin.reason) == ("loaded", "")
    assert [record.name for record in plugin.records] == ["good"]
    assert plugin.provider == "unknown 0 (good_one)"
    assert not plugin.first_party


def test_plugins_come_sorted_by_name_and_once(module: Write) -> None:
    entries = [module("zeta", GOOD), module("alpha", GOOD), module("zeta", GOOD)]
    assert [plugin.name for plugin in load_plugins(entries=entries)] == ["alpha", "zeta"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise RuntimeError('no\\n  luck')", "RuntimeError: no luck"),
        ("import torch_is_not_here", "ModuleNotFoundError: No module named 'torch_is_not_here'"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise ValueError", "ValueError"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_switched_off_with_the_reason(
    module: Write, text: str, reason: str
) -> None:
    plugins = load_plugins(entries=[module("bad_import", text), module("good_beside", GOOD)])
    assert [plugin.status for plugin in plugins] == ["failed", "loaded"]
    assert plugins[0].reason.startswith(reason)


def test_an_interrupt_while_a_plugin_is_imported_reaches_the_user(module: Write) -> None:
    with pytest.raises(KeyboardInterrupt):
        one(module("interrupted", "raise KeyboardInterrupt"))


def test_a_misspelt_hook_is_an_error_with_a_suggestion(module: Write) -> None:
    plugin = one(module("misspelt", GOOD.replace("register_fusion", "register_fusoin")))
    assert plugin.reason == (
        "ValueError: there is no hook 'haiku_rag_register_fusoin'. Did you mean 'haiku_rag_register_fusion'?"
    )


def test_a_hook_without_its_mark_is_an_error(module: Write) -> None:
    plugin = one(module("unmarked", GOOD.replace("@hookimpl", "")))
    assert "'haiku_rag_register_fusion' is not marked with @hookimpl" in plugin.reason


def test_a_describing_hook_must_not_be_asynchronous() -> None:
    class Asynchronous:
        @hookimpl
        async def haiku_rag_register_fusion(self) -> list[FusionRecord]:
            return []

    with pytest.raises(ValueError, match="is asynchronous, and must not be"):
        collect(Asynchronous())


def test_a_transforming_hook_may_be_asynchronous() -> None:
    class Asynchronous:
        @hookimpl
        async def haiku_rag_before_search(self, request: object) -> None:
            return None

    assert collect(Asynchronous()) == ()


def test_a_record_of_another_kind_is_an_error() -> None:
    class Mixed:
        @hookimpl
        def haiku_rag_register_fusion(self) -> Iterable[PluginRecord]:
            yield FusionRecord(name="good", summary="s", factory="nowhere:made")
            yield StorageRecord(name="bad", summary="s", factory="nowhere:made")

    with pytest.raises(TypeError, match="yielded a StorageRecord, and must yield FusionRecord"):
        collect(Mixed())


def test_all_records_of_a_plugin_are_taken_or_none(module: Write) -> None:
    plugin = one(module("half", GOOD + "    raise KeyError('later')\n"))
    assert (plugin.status, plugin.records) == ("failed", ())


def test_a_hook_may_yield_nothing() -> None:
    class Silent:
        @hookimpl
        def haiku_rag_register_fusion(self) -> None:
            return None

    assert collect(Silent()) == ()


@pytest.mark.parametrize("name", ["blocked_one", "blocked-one", "Blocked_One"])
def test_a_disabled_plugin_is_not_even_imported(module: Write, name: str) -> None:
    plugin = one(module("blocked_one", "raise SystemExit"), disabled=[name])
    assert (plugin.status, plugin.reason) == ("disabled", "it is disabled")


def test_the_variable_disables_plugins_too(module: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAIKU_RAG_DISABLE_PLUGINS", "other,blocked_two")
    assert one(module("blocked_two", "raise SystemExit")).status == "disabled"


def test_without_third_parties_only_first_party_plugins_are_imported(module: Write) -> None:
    plugin = one(module("stranger", "raise SystemExit"), third_party=False)
    assert (plugin.status, plugin.reason) == ("disabled", "third-party plugins are off")
    (core,) = (plugin for plugin in load_plugins(third_party=False) if plugin.name == "core")
    assert (core.status, core.first_party) == ("loaded", True)


@pytest.mark.parametrize("factory", ["", "module", "module:", ":name", "a b:c", "module.name", "module:name()"])
def test_a_record_names_its_factory_as_module_and_object(factory: str) -> None:
    with pytest.raises(ValueError, match=r"write 'package\.module:object'"):
        FusionRecord(name="x", summary="s", factory=factory)


def test_a_record_has_a_name() -> None:
    with pytest.raises(ValueError, match="a FusionRecord has a blank name"):
        FusionRecord(name=" ", summary="s", factory="a:b")


def test_a_plugin_that_yields_a_name_twice_is_an_error() -> None:
    class Twice:
        @hookimpl
        def haiku_rag_register_fusion(self) -> Iterable[FusionRecord]:
            return [FusionRecord(name="x", summary="s", factory="a:b")] * 2

    with pytest.raises(ValueError, match="it yields the fusion 'x' twice"):
        collect(Twice())


@pytest.mark.parametrize("mark", [hookimpl(wrapper=True), hookimpl(hookwrapper=True)])
def test_a_hook_must_not_wrap_others(mark: Any) -> None:
    class Wrapping:
        @mark
        def haiku_rag_resolve_scope(self) -> Iterable[None]:
            yield

    with pytest.raises(ValueError, match="'haiku_rag_resolve_scope' is a wrapper"):
        collect(Wrapping())


def test_a_hook_must_not_be_an_asynchronous_generator() -> None:
    class Generating:
        @hookimpl
        async def haiku_rag_lifespan(self, client: object) -> AsyncIterator[None]:
            yield

    with pytest.raises(ValueError, match="is asynchronous, and must not be"):
        collect(Generating())
