"""Each hook of `haiku.rag.plugins.hookspecs`, called when its specification says, and what comes of it.

The tests are named after the hooks. The databases are in memory; the plugins are made up on the spot.
"""

from __future__ import annotations

import errno
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from haiku.rag.client import DatabaseScope, HaikuRAG, examine
from haiku.rag.config import AppConfig, Section
from haiku.rag.contracts import DatabaseRef, Finding, FusionContext, SourceContent
from haiku.rag.errors import ConversionError, HaikuRagError, PluginError, SourceUnavailableError
from haiku.rag.federation import ScopeSelector, SearchPlan, SearchRequest
from haiku.rag.models import Document, DocumentImport, ParsedDocument, SearchReport, SearchResults
from haiku.rag.plugins import (
    AnswererRecord,
    ChunkerRecord,
    CommandRecord,
    ConfigSectionRecord,
    ConverterRecord,
    EmbedderRecord,
    ErrorRecord,
    FusionRecord,
    HealthCheckRecord,
    McpToolRecord,
    PluginRecord,
    RerankerRecord,
    ScreenRecord,
    SourceRecord,
    StorageRecord,
    hookimpl,
)
from haiku.rag.testing import (
    HashEmbedder,
    MemoryServer,
    MemoryStorage,
    OverlapReranker,
    ParagraphChunker,
    TextConverter,
    memory_server,
    testing_config,
    testing_kernel,
    testing_plugin,
)
from haiku.rag.testing import plugin as memory_plugin

pytestmark = pytest.mark.anyio
HERE = __name__
TEXTS = {"wiki": "The stone bridge was rebuilt.", "archive": "A bridge of stone, and a ferry.", "blog": "Owls hunt."}


@pytest.fixture
def server(request: pytest.FixtureRequest) -> MemoryServer:
    return memory_server(request.node.nodeid)


@pytest.fixture
def configured(request: pytest.FixtureRequest) -> Callable[..., AppConfig]:
    """Makes a configuration over three databases in memory and the given plugins, by name."""

    def configure(data: Mapping[str, Any] | None = None, section: str = "memory", **plugins: object) -> AppConfig:
        places = {name: f"memory://{name}" for name in TEXTS}
        named = [testing_plugin(target, name=name) for name, target in plugins.items()]
        whole = {section: {"server": request.node.nodeid, "databases": places}, **(data or {})}
        return testing_config(whole, memory_plugin, *named)

    return configure


async def filled(config: AppConfig) -> AppConfig:
    for name, text in TEXTS.items():
        async with HaikuRAG(config=config, sources=[name], create=True) as client:
            await client.create_document(text, uri=f"text:{name}")
    return config


class Registering:
    """A plugin whose register hook of a kind yields the records, and counts how often it was called."""

    def __init__(self, *records: PluginRecord) -> None:
        self.calls = 0

        def register() -> Iterable[PluginRecord]:
            self.calls += 1
            yield from records

        setattr(self, f"haiku_rag_register_{records[0].kind}", hookimpl(register))


class CountingStorage(MemoryStorage):
    """The storage in memory, under another name."""

    name = "ledger"
    section = "ledger"


async def test_haiku_rag_register_storage_adds_an_engine_for_its_section(configured: Callable[..., AppConfig]) -> None:
    record = StorageRecord(name="ledger", summary="s", factory=f"{HERE}:CountingStorage", sections=("ledger",))
    section = ConfigSectionRecord(name="ledger", summary="s", factory="haiku.rag.testing.memory:MemorySection")
    ledger = Registering(record)
    config = await filled(configured(section="ledger", ledger=ledger, ledger_section=Registering(section)))
    assert {ref.storage for ref in DatabaseScope.resolve(config).databases} == {"ledger"}
    async with HaikuRAG(config=config, sources=["wiki"]) as client:
        assert (await client.info()).storage == "ledger"
    assert ledger.calls == 1


class ConstantEmbedder(HashEmbedder):
    """Every text is the same to it."""

    async def embed_query(self, query: str | bytes) -> NDArray[np.float32]:
        return await super().embed_query("the same")


async def test_haiku_rag_register_embedder_adds_what_a_provider_names(configured: Callable[..., AppConfig]) -> None:
    record = EmbedderRecord(name="constant", summary="s", factory=f"{HERE}:ConstantEmbedder")
    constant = Registering(record)
    config = configured({"embeddings": {"model": {"provider": "constant"}}}, constant=constant)
    await filled(config)
    async with HaikuRAG(config=config) as client:
        one, other = (
            await client.search("stone", search_type="vector"),
            await client.search("owl", search_type="vector"),
        )
    assert [hit.score for hit in one] == [hit.score for hit in other]
    assert constant.calls == 1


class OwlReranker(OverlapReranker):
    """Owls come first."""

    async def rerank(self, query: str, candidates: Sequence[Any], limit: int) -> list[tuple[int, float]]:
        return await super().rerank("owls hunt", candidates, limit)


async def test_haiku_rag_register_reranker_adds_what_orders_the_pool(configured: Callable[..., AppConfig]) -> None:
    owls = Registering(RerankerRecord(name="owls", summary="s", factory=f"{HERE}:OwlReranker"))
    config = await filled(configured({"reranking": {"model": {"provider": "owls"}}}, owls=owls))
    async with HaikuRAG(config=config) as client:
        results = await client.search("stone bridge")
    assert results[0].source == "blog"
    assert results.report.rerank == "ok"
    assert owls.calls == 1


class LongestFirst:
    """The last candidate of each database's own order comes first."""

    def __init__(self, config: object) -> None:
        self.config = config

    def scale(self, context: FusionContext) -> tuple[float, float] | None:
        return None

    def fuse(self, pool: pa.Table, context: FusionContext) -> NDArray[np.float64]:
        return np.asarray(-pool["similarity"].to_numpy(), dtype=np.float64)


async def test_haiku_rag_register_fusion_adds_a_strategy_chosen_per_call(configured: Callable[..., AppConfig]) -> None:
    backwards = Registering(FusionRecord(name="backwards", summary="s", factory=f"{HERE}:LongestFirst"))
    config = await filled(configured(backwards=backwards))
    async with HaikuRAG(config=config) as client:
        usual = await client.search("stone bridge", search_type="vector", fusion="cosine")
        turned = await client.search("stone bridge", search_type="vector", fusion="backwards")
    assert [hit.source for hit in turned] == [hit.source for hit in usual][::-1]
    assert turned.report.fusion == "backwards"
    assert backwards.calls == 1


class QuotaError(HaikuRagError):
    """A quota is used up; the text says where."""

    exit_status = 75


class Quota(Registering):
    """Makes a full disk a `QuotaError`, whose text names the location where the disk says so."""

    @hookimpl
    def haiku_rag_translate_error(self, error: Exception, ref: DatabaseRef) -> HaikuRagError | None:
        if not isinstance(error, OSError):
            return None
        return QuotaError(f"{ref.location if error.strerror == 'loose' else ref.name} is full.")


@pytest.mark.parametrize(("names_location", "said"), [(False, "close"), (True, "close"), (False, "loose")])
async def test_haiku_rag_register_error_says_whether_a_text_may_name_a_location(
    configured: Callable[..., AppConfig], server: MemoryServer, names_location: bool, said: str
) -> None:
    record = ErrorRecord(
        name="quota", summary="s", factory=f"{HERE}:QuotaError", exit_status=75, names_location=names_location
    )
    quota = Quota(record)
    config = await filled(configured(quota=quota))
    server.fail("memory://wiki", OSError(errno.EDQUOT, said), "search")
    with pytest.raises(HaikuRagError) as caught:
        async with HaikuRAG(config=config, sources=["wiki"]) as client:
            await client.search("stone")
    trusted = not names_location and said == "close"
    assert isinstance(caught.value, QuotaError if trusted else SourceUnavailableError)
    assert "memory://" not in str(caught.value)
    assert config.kernel.resolve("error", "quota") is QuotaError
    assert quota.calls == 1


class ShoutingConverter(TextConverter):
    """Reads `.shout` in capitals."""

    def convert(self, content: SourceContent) -> ParsedDocument:
        return super().convert(replace(content, data=content.data.upper()))


async def test_haiku_rag_register_converter_adds_a_suffix(configured: Callable[..., AppConfig], tmp_path: Any) -> None:
    record = ConverterRecord(
        name="shout", summary="s", factory=f"{HERE}:ShoutingConverter", suffixes=frozenset({".shout"})
    )
    shout = Registering(record)
    (tmp_path / "a.shout").write_text("stone bridge")
    async with HaikuRAG(config=configured(shout=shout)) as client:
        parsed = await client.convert(tmp_path / "a.shout")
    assert parsed.content == "STONE BRIDGE"
    assert shout.calls == 1


class WholeChunker(ParagraphChunker):
    """A chunk a document."""

    def chunk(self, document: ParsedDocument, **options: Any) -> list[Any]:
        return super().chunk(ParsedDocument(content=document.content.replace("\n\n", " ")), **options)


async def test_haiku_rag_register_chunker_adds_what_processing_names(configured: Callable[..., AppConfig]) -> None:
    whole = Registering(ChunkerRecord(name="whole", summary="s", factory=f"{HERE}:WholeChunker"))
    config = configured({"processing": {"chunker": "whole"}}, whole=whole)
    async with HaikuRAG(config=config) as client:
        chunks = await client.chunk(ParsedDocument(content="one\n\ntwo"))
    assert [chunk.content for chunk in chunks] == ["one two"]
    assert whole.calls == 1


class CupboardSource:
    """Documents in a cupboard."""

    contents: ClassVar[dict[str, bytes]] = {"cupboard://a": b"stone bridge", "cupboard://b": b"owls"}

    def __init__(self, config: object) -> None:
        self.config = config

    async def discover(self, location: str) -> AsyncIterator[str]:
        for uri in self.contents:
            if uri.startswith(location):
                yield uri

    async def fetch(self, uri: str) -> SourceContent:
        return SourceContent(uri=uri, name=uri, data=self.contents[uri], media_type="text/plain")


async def test_haiku_rag_register_source_adds_a_scheme(configured: Callable[..., AppConfig]) -> None:
    record = SourceRecord(name="cupboard", summary="s", factory=f"{HERE}:CupboardSource", schemes=("cupboard",))
    cupboard = Registering(record)
    async with HaikuRAG(config=configured(cupboard=cupboard), sources=["wiki"], create=True) as client:
        steps = [step async for step in client.ingest("cupboard://")]
        documents = await client.list_documents()
    assert sorted(str(document.uri) for document in documents) == ["cupboard://a", "cupboard://b"]
    assert steps[-1].total == 2
    assert cupboard.calls == 1


class EchoAnswerer:
    """Answers with the question."""

    def __init__(self, config: object) -> None:
        self.config = config


def test_haiku_rag_register_answerer_adds_what_is_built_from_the_configuration() -> None:
    echo = Registering(AnswererRecord(name="echo", summary="s", factory=f"{HERE}:EchoAnswerer"))
    kernel = testing_kernel(testing_plugin(echo, name="echo"))
    assert isinstance(kernel.create("answerer", "echo", "the configuration"), EchoAnswerer)
    assert echo.calls == 1


class NeverImported:
    """Stands for what a record names and nothing has asked for."""


@pytest.mark.parametrize(
    "record_type", [CommandRecord, McpToolRecord, ScreenRecord, HealthCheckRecord], ids=lambda record: record.kind
)
def test_a_record_is_listed_without_importing_what_it_names(record_type: type[PluginRecord]) -> None:
    record = record_type(name="thing", summary="s", factory="no_such_module:thing")
    kernel = testing_kernel(testing_plugin(Registering(record), name="thing"))
    assert kernel.records(record_type) == [record]
    with pytest.raises(PluginError, match="no_such_module"):
        kernel.resolve(record.kind, "thing")


def registered(record: PluginRecord) -> Any:
    """What the one record of a plugin resolves to; the hook was called once."""
    plugin = Registering(record)
    kernel = testing_kernel(testing_plugin(plugin, name="thing"))
    assert kernel.records(type(record)) == [record]
    assert plugin.calls == 1
    return kernel.resolve(record.kind, record.name)


def test_haiku_rag_register_command_adds_the_object_itself() -> None:
    assert registered(CommandRecord(name="thing", summary="s", factory=f"{HERE}:NeverImported")) is NeverImported


def test_haiku_rag_register_mcp_tool_adds_the_function_and_whether_it_writes() -> None:
    record = McpToolRecord(name="thing", summary="s", factory="json:dumps", writes=True)
    assert registered(record) is json.dumps
    assert record.writes


def test_haiku_rag_register_screen_adds_the_class() -> None:
    assert registered(ScreenRecord(name="thing", summary="s", factory=f"{HERE}:NeverImported")) is NeverImported


async def is_tea_ready(config: AppConfig) -> Sequence[Finding]:
    """A check of a plugin's own."""
    return [Finding(check="tea", status="warning", message=f"It is cold, and {config.search.limit} cups are wanted.")]


async def test_haiku_rag_register_health_check_adds_a_check_to_doctor() -> None:
    tea = Registering(HealthCheckRecord(name="tea", summary="s", factory=f"{HERE}:is_tea_ready"))
    config = testing_config({}, memory_plugin, tea)
    report = await examine(DatabaseScope.resolve(config, database_path="/none.memory"), config)
    assert [finding.message for finding in report.findings if finding.check == "tea"] == [
        "It is cold, and 5 cups are wanted."
    ]


class TeaSection(Section):
    """How tea is made."""

    minutes: int = 4


def test_haiku_rag_register_config_section_adds_a_section_with_its_defaults_and_its_errors() -> None:
    tea = Registering(ConfigSectionRecord(name="tea", summary="s", factory=f"{HERE}:TeaSection"))
    assert testing_config({}, testing_plugin(tea, name="tea")).section("tea") == TeaSection()
    assert testing_config({"tea": {"minutes": 2}}, testing_plugin(tea, name="tea")).section("tea").minutes == 2
    with pytest.raises(ValueError, match=r"tea\.minuets\n.*Did you mean 'minutes'\?"):
        testing_config({"tea": {"minuets": 2}}, testing_plugin(tea, name="tea"))


async def test_haiku_rag_resolve_scope_answers_first_or_leaves_it_to_core(
    configured: Callable[..., AppConfig], server: MemoryServer
) -> None:
    def resolve(config: AppConfig, selector: ScopeSelector) -> DatabaseScope | None:
        if selector.database_name != "attic":
            return None
        return DatabaseScope((DatabaseRef(name="attic", location="memory://attic", storage="memory"),))

    config = configured(finder=SimpleNamespace(haiku_rag_resolve_scope=hookimpl(resolve)))
    assert DatabaseScope.resolve(config).names == tuple(TEXTS)
    scope = DatabaseScope.resolve(config, database_name="attic")
    assert not server.calls
    async with HaikuRAG.over(scope, config, create=True) as client:
        await client.create_document("Owls in the attic.")
        assert [hit.source for hit in await client.search("owls")] == ["attic"]


async def test_haiku_rag_plan_federation_groups_the_calls(
    configured: Callable[..., AppConfig], server: MemoryServer
) -> None:
    def together(scope: DatabaseScope, request: SearchRequest) -> SearchPlan | None:
        return SearchPlan((scope.databases,)) if request.limit == 3 else None

    config = await filled(configured(planner=SimpleNamespace(haiku_rag_plan_federation=hookimpl(together))))
    async with HaikuRAG(config=config) as client:
        apart = await client.search("stone bridge", limit=4)
        assert [server.calls[f"memory://{name}", "search"] for name in TEXTS] == [1, 1, 1]
        as_one = await client.search("stone bridge", limit=3)
    assert [server.calls[f"memory://{name}", "search"] for name in TEXTS] == [1, 1, 1]
    assert [server.calls[f"memory://{name}", "search_many"] for name in TEXTS] == [1, 1, 1]
    assert [hit.chunk_id for hit in as_one] == [hit.chunk_id for hit in apart]


async def test_haiku_rag_plan_federation_must_ask_each_database_once(configured: Callable[..., AppConfig]) -> None:
    def forgetful(scope: DatabaseScope) -> SearchPlan:
        return SearchPlan((scope.databases[:1],))

    config = await filled(configured(planner=SimpleNamespace(haiku_rag_plan_federation=hookimpl(forgetful))))
    async with HaikuRAG(config=config) as client:
        with pytest.raises(PluginError, match="the federation plan asks"):
            await client.search("stone")


async def test_haiku_rag_translate_error_says_what_a_failure_means(
    configured: Callable[..., AppConfig], server: MemoryServer
) -> None:
    def translate(error: Exception, ref: DatabaseRef) -> HaikuRagError | None:
        if not isinstance(error, PermissionError):
            return None
        return SourceUnavailableError(f"database '{ref.name}' wants a badge. Ask the porter.")

    config = await filled(configured(porter=SimpleNamespace(haiku_rag_translate_error=hookimpl(translate))))
    server.fail("memory://wiki", PermissionError("memory://wiki"), "search")
    server.fail("memory://blog", ConnectionError("memory://blog"), "search")
    async with HaikuRAG(config=config) as client:
        results = await client.search("stone", on_unavailable="skip")
    reasons = {entry.name: entry.reason for entry in results.report.databases}
    assert reasons["wiki"] == "database 'wiki' wants a badge. Ask the porter."
    assert reasons["archive"] is None
    assert reasons["blog"] is not None
    assert reasons["blog"].startswith("database 'blog' cannot be read (ConnectionError).")


async def test_haiku_rag_before_search_changes_the_request_before_anything_opens(
    configured: Callable[..., AppConfig], server: MemoryServer
) -> None:
    async def narrow(request: SearchRequest, options: Mapping[str, Any]) -> SearchRequest:
        assert not any(operation == "open" for _, operation in server.calls)
        return replace(request, sources=tuple(options["only"]))

    plugin = SimpleNamespace(haiku_rag_before_search=hookimpl(narrow))
    listed = {"hooks": [{"name": "narrow", "options": {"only": ["archive"]}}]}
    await filled(configured())
    server.calls.clear()
    async with HaikuRAG(config=configured(listed, narrow=plugin)) as client:
        assert {hit.source for hit in await client.search("stone bridge")} == {"archive"}
    assert {location for location, _ in server.calls} == {"memory://archive"}
    async with HaikuRAG(config=configured(narrow=plugin)) as client:
        assert len(await client.search("stone bridge")) == 3, "a transform that is not listed does not run"


async def test_haiku_rag_before_search_runs_in_the_order_of_the_configuration(
    configured: Callable[..., AppConfig],
) -> None:
    def adding(word: str) -> object:
        def add(request: SearchRequest) -> SearchRequest:
            return replace(request, query=f"{request.query!s} {word}")

        return SimpleNamespace(haiku_rag_before_search=hookimpl(add))

    seen: list[str | bytes] = []

    def finished(request: SearchRequest) -> None:
        seen.append(request.query)

    plugins = {"one": adding("one"), "two": adding("two")}
    plugins["ear"] = SimpleNamespace(haiku_rag_search_finished=hookimpl(finished))
    await filled(configured())
    for order in (["one", "two"], ["two", "one"]):
        async with HaikuRAG(config=configured({"hooks": order}, **plugins)) as client:
            await client.search("stone")
    assert seen == ["stone one two", "stone two one"]


async def test_haiku_rag_after_search_changes_the_enriched_results(configured: Callable[..., AppConfig]) -> None:
    def shout(request: SearchRequest, results: SearchResults) -> SearchResults:
        assert request.query == "stone bridge"
        louder = [hit.model_copy(update={"content": hit.content.upper()}) for hit in results]
        return SearchResults(louder, report=results.report)

    plugin = SimpleNamespace(haiku_rag_after_search=hookimpl(shout))
    config = await filled(configured({"hooks": ["shout"]}, shout=plugin))
    async with HaikuRAG(config=config, sources=["wiki"]) as client:
        results = await client.search("stone bridge")
    assert [hit.content for hit in results] == ["THE STONE BRIDGE WAS REBUILT."]
    assert results.report.databases[0].name == "wiki"


async def test_haiku_rag_before_ingest_changes_a_document_or_refuses_it(configured: Callable[..., AppConfig]) -> None:
    async def check(document: DocumentImport, options: Mapping[str, Any]) -> DocumentImport | None:
        if options["forbidden"] in document.content:
            raise ConversionError("the document holds a secret.")
        return document.model_copy(update={"metadata": {**document.metadata, "checked": True}})

    plugin = SimpleNamespace(haiku_rag_before_ingest=hookimpl(check))
    config = configured({"hooks": [{"name": "check", "options": {"forbidden": "secret"}}]}, check=plugin)
    async with HaikuRAG(config=config, sources=["wiki"], create=True) as client:
        document = await client.create_document("Nothing to hide.")
        assert document.metadata == {"checked": True}
        with pytest.raises(ConversionError, match="holds a secret"):
            await client.create_document("A secret.")
        assert await client.count_documents() == 1


async def test_haiku_rag_after_ingest_is_told_after_the_commit(
    configured: Callable[..., AppConfig], server: MemoryServer
) -> None:
    told: list[tuple[str | None, str | None, bool]] = []

    def remember(document: Document) -> None:
        told.append((document.uri, document.source, document.id in server.states["memory://wiki"].documents))

    config = configured(memory=SimpleNamespace(haiku_rag_after_ingest=hookimpl(remember)))
    async with HaikuRAG(config=config, sources=["wiki"], create=True) as client:
        await client.create_document("Owls.", uri="text:1")
        await client.import_documents([DocumentImport(content="Bees.", uri="text:2")])
    assert told == [("text:1", "wiki", True), ("text:2", "wiki", True)]


async def test_haiku_rag_after_delete_is_told_what_went_and_from_where(configured: Callable[..., AppConfig]) -> None:
    told: list[tuple[str, str]] = []

    async def remember(document_id: str, source: str) -> None:
        told.append((document_id, source))

    config = configured(memory=SimpleNamespace(haiku_rag_after_delete=hookimpl(remember)))
    async with HaikuRAG(config=config, sources=["wiki"], create=True) as client:
        document = await client.create_document("Owls.")
        assert await client.delete_document(document.id)
        assert not await client.delete_document(document.id)
    assert told == [(document.id, "wiki")]


async def test_haiku_rag_search_finished_is_told_the_report_and_cannot_spoil_the_search(
    configured: Callable[..., AppConfig], caplog: pytest.LogCaptureFixture
) -> None:
    told: list[list[str]] = []

    def remember(report: SearchReport) -> None:
        told.append([entry.name for entry in report.databases])
        raise RuntimeError("memory://wiki")

    config = await filled(configured(memory=SimpleNamespace(haiku_rag_search_finished=hookimpl(remember))))
    async with HaikuRAG(config=config) as client:
        assert len(await client.search("stone bridge")) == 3
    assert told == [list(TEXTS)]
    assert "plugin 'memory' failed in haiku_rag_search_finished: RuntimeError" in caplog.text
    assert "memory://" not in caplog.text


async def test_haiku_rag_lifespan_is_held_while_the_client_is_open(configured: Callable[..., AppConfig]) -> None:
    events: list[str] = []

    def lifespan(client: HaikuRAG) -> AbstractAsyncContextManager[None]:
        @asynccontextmanager
        async def held() -> AsyncIterator[None]:
            events.append(f"open over {client.source}")
            yield
            events.append("closed")

        return held()

    config = configured(held=SimpleNamespace(haiku_rag_lifespan=hookimpl(lifespan)))
    client = HaikuRAG(config=config, sources=["wiki"], create=True)
    assert events == []
    async with client:
        assert events == ["open over wiki"]
        async with await client.reader_for("wiki"):
            assert events == ["open over wiki"], "a borrowed client has no life of its own"
        await client.create_document("Owls.")
    assert events == ["open over wiki", "closed"]
