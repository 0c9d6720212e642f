"""Which provider a name means, and the calls to hooks."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest

from haiku.rag.errors import (
    ConfigError,
    FilterError,
    MissingDependencyError,
    PluginConflictError,
    PluginError,
    PluginNotLoadedError,
    UnknownPluginError,
)
from haiku.rag.plugins import ChunkerRecord, FusionRecord, StorageRecord, hookimpl
from haiku.rag.plugins.kernel import Kernel, load_kernel
from haiku.rag.plugins.loading import Plugin
from haiku.rag.testing import testing_kernel, testing_plugin

Write = Callable[[str, str], EntryPoint]
FUSIONS = ["calibrated", "cosine", "rrf", "weighted"]


class Provider:
    """A plugin with fusions of the given names, each from the given factory."""

    def __init__(self, *names: str, factory: str = "haiku.rag.fusion:CosineFusion", **facts: Any) -> None:
        self._records = [FusionRecord(name=name, summary="s", factory=factory, **facts) for name in names]

    @hookimpl
    def haiku_rag_register_fusion(self) -> Iterable[FusionRecord]:
        return self._records


def two_jinas(**options: Any) -> Kernel:
    return testing_kernel(
        testing_plugin(Provider("jina"), name="http", distribution="haiku-rag-rerank-http", version="0.3"),
        testing_plugin(Provider("jina", "other"), name="acme", distribution="acme-jina", version="2.0"),
        **options,
    )


CONFLICT = (
    "fusion 'jina' is provided by two plugins: haiku-rag-rerank-http 0.3 (Provider) and acme-jina 2.0 (Provider). "
    "Uninstall one, set plugins.disabled, or set plugins.prefer."
)


def test_a_name_that_two_plugins_provide_is_a_conflict_that_names_both() -> None:
    kernel = two_jinas()
    with pytest.raises(PluginConflictError) as caught:
        kernel.find("fusion", "jina")
    assert str(caught.value) == CONFLICT
    assert kernel.conflicts() == [CONFLICT]
    assert [record.name for record in kernel.records(FusionRecord)] == sorted([*FUSIONS, "other"])
    assert [entry.plugin.name for entry in kernel.provided("fusion") if entry.record.name == "jina"] == ["acme", "http"]


@pytest.mark.parametrize("preferred", ["acme", "acme_jina", "Acme-Jina"])
def test_a_preference_settles_a_conflict(preferred: str) -> None:
    kernel = two_jinas(prefer=[preferred])
    assert kernel.find("fusion", "jina").plugin.name == "acme"
    assert kernel.conflicts() == []


def test_an_unknown_name_is_told_with_the_nearest_known_one() -> None:
    with pytest.raises(
        UnknownPluginError, match=f"no fusion 'cosin'. Known: {', '.join(FUSIONS)}. Did you mean 'cosine'?"
    ):
        testing_kernel().find("fusion", "cosin")


def test_an_unknown_name_that_an_extra_installs_is_told_with_the_command() -> None:
    with pytest.raises(UnknownPluginError, match=r"pip install 'haiku-rag-core\[lancedb\]'"):
        testing_kernel().find("storage", "lancedb")


def failed(name: str, *, distribution: str = "", status: Any = "failed", reason: str = "ImportError: x") -> Plugin:
    return Plugin(name=name, distribution=distribution or name, version="1", module=name, status=status, reason=reason)


def test_a_name_whose_plugin_failed_says_what_became_of_it() -> None:
    kernel = testing_kernel(failed("acme", distribution="acme-rag"))
    with pytest.raises(PluginNotLoadedError, match=r"no fusion 'other'.*Plugin 'acme' \(acme-rag 1\) was not loaded"):
        kernel.find("fusion", "other")


def test_a_disabled_plugin_is_named_only_for_its_own_name() -> None:
    kernel = testing_kernel(failed("acme", status="disabled", reason="it is disabled"))
    with pytest.raises(PluginNotLoadedError, match="it is disabled"):
        kernel.find("fusion", "acme")
    with pytest.raises(UnknownPluginError):
        kernel.find("fusion", "other")


def test_a_factory_is_imported_when_its_name_is_selected(module: Write) -> None:
    module("made_late", "class Outer:\n    class Inner:\n        def __init__(self, config): self.config = config\n")
    kernel = testing_kernel(Provider("late", factory="made_late:Outer.Inner"))
    assert kernel.create("fusion", "late", "the config").config == "the config"


def test_a_missing_library_is_told_with_what_installs_it(module: Write) -> None:
    module("needs_torch", "import torch_is_not_here")
    kernel = testing_kernel(
        Provider("a", factory="needs_torch:x", needs="torch", extra="lancedb"), Provider("b", factory="needs_torch:x")
    )
    with pytest.raises(MissingDependencyError, match=r"fusion 'a' needs torch. Install it with: .*\[lancedb\]"):
        kernel.resolve("fusion", "a")
    with pytest.raises(MissingDependencyError, match="fusion 'b' needs torch_is_not_here"):
        kernel.resolve("fusion", "b")


@pytest.mark.parametrize(("text", "attribute"), [("", "missing"), ("raise ImportError('half built')", "x")])
def test_a_factory_that_cannot_be_loaded_is_told(module: Write, text: str, attribute: str) -> None:
    module("broken_factory", text)
    kernel = testing_kernel(Provider("a", factory=f"broken_factory:{attribute}"))
    with pytest.raises(PluginNotLoadedError, match="fusion 'a' could not be loaded: (Attribute|Import)Error"):
        kernel.resolve("fusion", "a")


class Standalone:
    def __init__(self, name: str) -> None:
        self._name = name

    @hookimpl
    def haiku_rag_register_chunker(self) -> Iterable[ChunkerRecord]:
        yield ChunkerRecord(name=self._name, summary="s", factory="a:b", standalone=True)


def test_the_default_is_the_one_that_needs_no_configuration() -> None:
    assert testing_kernel(Standalone("one")).default(ChunkerRecord).name == "one"


def test_two_defaults_are_a_conflict() -> None:
    with pytest.raises(PluginConflictError, match="can serve as the chunker: 'one', 'two'. Name one."):
        testing_kernel(Standalone("one"), Standalone("two")).default(ChunkerRecord)


def test_no_default_is_told_with_what_installs_one() -> None:
    with pytest.raises(UnknownPluginError, match=r"no storage is configured.*haiku-rag-core\[default\]"):
        testing_kernel().default(StorageRecord)


class Decider:
    def __init__(self, answer: Any) -> None:
        self._answer = answer

    @hookimpl
    def haiku_rag_translate_error(self, error: Exception) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class Last:
    @hookimpl(trylast=True)
    def haiku_rag_translate_error(self) -> str:
        return "last"


def test_the_first_answer_that_is_not_none_counts() -> None:
    assert Kernel([testing_plugin(Last()), testing_plugin(Decider("first"))]).decide(
        "haiku_rag_translate_error", error=OSError(), ref=None
    ) == ("first")
    assert Kernel([testing_plugin(Decider(None)), testing_plugin(Last())]).decide(
        "haiku_rag_translate_error", error=OSError(), ref=None
    ) == ("last")


def test_without_any_answer_the_decision_is_none() -> None:
    assert Kernel([]).decide("haiku_rag_translate_error", error=OSError(), ref=None) is None


def test_a_plugin_that_fails_to_decide_is_named_and_its_words_are_not() -> None:
    kernel = Kernel([testing_plugin(Decider(KeyError("s3://secret")), name="acme", distribution="acme-rag")])
    with pytest.raises(PluginError) as caught:
        kernel.decide("haiku_rag_translate_error", error=OSError(), ref=None)
    assert str(caught.value) == "plugin 'acme' (acme-rag 0) failed in haiku_rag_translate_error: KeyError."


def test_an_error_of_ours_passes_through_a_decision() -> None:
    with pytest.raises(FilterError):
        Kernel([testing_plugin(Decider(FilterError("no")))]).decide(
            "haiku_rag_translate_error", error=OSError(), ref=None
        )


class Observer:
    def __init__(self, seen: list[str], *, fails: bool = False) -> None:
        self._seen = seen
        self._fails = fails

    @hookimpl
    async def haiku_rag_after_delete(self, document_id: str) -> None:
        if self._fails:
            raise RuntimeError("hidden words")
        self._seen.append(document_id)


@pytest.mark.anyio
async def test_every_observer_is_told_and_a_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []
    kernel = testing_kernel(
        testing_plugin(Observer(seen), name="one"),
        testing_plugin(Observer(seen, fails=True), name="two"),
        testing_plugin(Observer(seen), name="three"),
    )
    with caplog.at_level(logging.WARNING):
        await kernel.observe("haiku_rag_after_delete", document_id="d", source="a")
    assert seen == ["d", "d"]
    assert "plugin 'two' failed in haiku_rag_after_delete: RuntimeError" in caplog.text
    assert "hidden words" not in caplog.text


class Suffix:
    @hookimpl
    async def haiku_rag_before_search(self, request: str, options: dict[str, str]) -> str | None:
        return request + options["add"] if "add" in options else None


def entry(name: str, **options: str) -> SimpleNamespace:
    return SimpleNamespace(name=name, options=options)


@pytest.mark.anyio
async def test_listed_plugins_transform_in_the_order_of_the_list() -> None:
    kernel = testing_kernel(testing_plugin(Suffix(), name="x"), testing_plugin(Suffix(), name="y"))
    entries = [entry("y", add="y"), entry("x", add="x"), entry("core"), entry("x")]
    assert await kernel.transform("haiku_rag_before_search", entries, "request", request="q") == "qyx"
    assert await kernel.transform("haiku_rag_before_search", [], "request", request="q") == "q"


@pytest.mark.anyio
async def test_a_listed_plugin_that_is_not_loaded_is_an_error() -> None:
    kernel = testing_kernel(failed("acme"))
    with pytest.raises(PluginNotLoadedError, match="plugin 'acme'"):
        await kernel.transform("haiku_rag_before_search", [entry("acme")], "request", request="q")
    with pytest.raises(UnknownPluginError, match="no plugin 'acne'. Known: acme, core. Did you mean 'acme'?"):
        await kernel.transform("haiku_rag_before_search", [entry("acne")], "request", request="q")


def test_lifespans_are_the_managers_that_plugins_give() -> None:
    class Held:
        @hookimpl
        def haiku_rag_lifespan(self, client: object) -> AbstractAsyncContextManager[object] | None:
            return held() if client == "client" else None

    @asynccontextmanager
    async def held() -> AsyncIterator[str]:
        yield "held"

    kernel = testing_kernel(Held())
    assert len(list(kernel.lifespans("client"))) == 1
    assert list(kernel.lifespans("other")) == []


def test_the_same_settings_get_the_same_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_kernel(prefer=["a"]) is load_kernel(prefer=["a"])
    monkeypatch.setenv("HAIKU_RAG_DISABLE_PLUGINS", "core")
    assert [plugin.status for plugin in load_kernel().plugins if plugin.name == "core"] == ["disabled"]


def test_the_variable_of_no_plugins_keeps_strangers_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAIKU_RAG_NO_PLUGINS", "1")
    assert load_kernel() is load_kernel(third_party=False)
    monkeypatch.setenv("HAIKU_RAG_NO_PLUGINS", "0")
    assert load_kernel() is load_kernel(third_party=True)


@pytest.mark.parametrize("text", ["def make(config): raise KeyError('words')", "def make(config): raise SystemExit(3)"])
def test_a_factory_that_fails_names_its_plugin(module: Write, text: str) -> None:
    module("failing_factory", text)
    plugin = testing_plugin(Provider("a", factory="failing_factory:make"), name="acme", distribution="acme-rag")
    with pytest.raises(PluginError, match=r"plugin 'acme' \(acme-rag 0\) failed in making the fusion 'a': "):
        testing_kernel(plugin).create("fusion", "a", None)


def test_an_error_of_ours_passes_through_a_factory(module: Write) -> None:
    module(
        "refusing_factory",
        "from haiku.rag.errors import ConfigError\ndef make(config): raise ConfigError('set a key.')\n",
    )
    with pytest.raises(ConfigError, match=r"^set a key\.$"):
        testing_kernel(Provider("a", factory="refusing_factory:make")).create("fusion", "a", None)


def test_an_engine_that_cannot_be_made_says_nothing_of_where_a_database_is(module: Write) -> None:
    module("failing_engine", "def make(config): raise KeyError('s3://secret')")

    class Engine:
        @hookimpl
        def haiku_rag_register_storage(self) -> Iterable[StorageRecord]:
            yield StorageRecord(name="a", summary="s", factory="failing_engine:make")

    with pytest.raises(PluginError, match="failed in making the storage 'a': KeyError") as caught:
        testing_kernel(Engine()).create("storage", "a", None)
    assert "secret" not in str(caught.value)


def test_a_lifespan_that_fails_names_its_plugin() -> None:
    class Failing:
        @hookimpl
        def haiku_rag_lifespan(self, client: object) -> None:
            raise RuntimeError("not today")

    with pytest.raises(PluginError, match="plugin 'Failing' .* failed in haiku_rag_lifespan: RuntimeError"):
        list(testing_kernel(Failing()).lifespans("client"))
