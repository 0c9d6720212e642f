"""The write pipeline over storage in memory: what is embedded, stored, refused and told."""

import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

from haiku.rag.client import DocumentImport, HaikuRAG, IngestFailure, IngestResults
from haiku.rag.contracts import SourceContent
from haiku.rag.errors import (
    ConversionError,
    DocumentNotFoundError,
    EmbeddingError,
    FilterError,
    PluginError,
    UnknownPluginError,
    UnsupportedSourceError,
)
from haiku.rag.models import Chunk, Document, DocumentItem, ParsedDocument, SearchResults
from haiku.rag.plugins import ChunkerRecord, ConverterRecord, SourceRecord, hookimpl
from haiku.rag.testing import (
    HashEmbedder,
    MemoryServer,
    embedding_calls,
    memory_server,
    testing_config,
    testing_plugin,
)
from haiku.rag.testing import plugin as memory_plugin

pytestmark = pytest.mark.anyio


class Place:
    """A database of a test's own, and what its embedder was asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.server: MemoryServer = memory_server(name)
        self.embedded: Counter[str] = embedding_calls(name)

    def client(self, *plugins: object, **sections: Any) -> HaikuRAG:
        data = {
            "memory": {"server": self.name, "databases": {"a": "memory://a"}},
            "embeddings": {"model": {"provider": "hash", "name": self.name}},
            **sections,
        }
        return HaikuRAG(config=testing_config(data, memory_plugin, *plugins), create=True)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Place:
    return Place(request.node.nodeid)


async def test_a_text_is_stored_with_its_title_and_found(place: Place) -> None:
    async with place.client() as client:
        made = await client.create_document("# Pilots\n\nThey wait.\n", uri="u", metadata={"year": 1900})
        (hit, *_) = await client.search("wait")
    assert (made.title, made.uri, made.metadata, made.chunk_count) == ("Pilots", "u", {"year": 1900}, 2)
    assert (hit.content, hit.headings, hit.document_meta) == ("They wait.", ["Pilots"], {"year": 1900})


async def test_a_uri_that_is_created_again_with_the_same_content_embeds_nothing(place: Place) -> None:
    async with place.client() as client:
        first = await client.create_document("They wait.", uri="u", title="t")
        count = Counter(place.embedded)
        assert await client.create_document("They wait.", uri="u", title="t") == first
        assert place.embedded == count
        renamed = await client.create_document("They wait.", uri="u", title="other", metadata={"a": 1})
        assert (renamed.id, renamed.title, renamed.metadata) == (first.id, "other", {"a": 1})
        assert place.embedded == count
        assert (await client.create_document("They wait.", uri="u")).title == "other"
        assert place.server.calls["memory://a", "write"] == 1


async def test_a_uri_that_is_created_again_with_other_content_is_replaced_and_keeps_its_id(place: Place) -> None:
    async with place.client() as client:
        first = await client.create_document("They wait.", uri="u")
        second = await client.create_document("They sail.", uri="u")
        assert (second.id, await client.count_documents()) == (first.id, 1)
        other_format = await client.create_document("They sail.", uri="u", format="plain")
        assert other_format.id == first.id
    assert place.embedded["documents"] == 3


async def test_texts_without_uri_are_documents_of_their_own(place: Place) -> None:
    async with place.client() as client:
        made = [await client.create_document("They wait.") for _ in range(2)]
        assert made[0].id != made[1].id


async def test_title_uri_and_metadata_alone_embed_nothing(place: Place) -> None:
    async with place.client() as client:
        made = await client.create_document("They wait.", uri="u")
        count = Counter(place.embedded)
        changed = await client.update_document(made.id, title="t", uri="v", metadata={"a": 1})
        assert (changed.title, changed.uri, changed.metadata) == ("t", "v", {"a": 1})
        assert place.embedded == count


async def test_new_content_keeps_what_is_not_given(place: Place) -> None:
    async with place.client() as client:
        made = await client.create_document("They wait.", uri="u", title="t", metadata={"a": 1})
        changed = await client.update_document(made.id, content="They sail.")
        assert (changed.id, changed.title, changed.uri, changed.metadata) == (made.id, "t", "u", {"a": 1})
        assert [hit.content for hit in await client.search("sail wait")] == ["They sail."]
        moved = await client.update_document(made.id, content="They row.", uri="v", title="s", metadata={})
        assert (moved.id, moved.title, moved.uri, moved.metadata) == (made.id, "s", "v", {})


async def test_a_document_that_is_not_there_cannot_be_changed(place: Place) -> None:
    async with place.client() as client:
        for change in ({"title": "t"}, {"content": "text"}):
            with pytest.raises(DocumentNotFoundError, match="database 'a' holds no document 'nowhere'") as caught:
                await client.update_document("nowhere", **change)  # type: ignore[arg-type]  # mypy takes str for all
            assert caught.value.source == "a"
        assert not await client.delete_document("nowhere")


async def test_a_document_is_deleted_with_its_passages(place: Place) -> None:
    async with place.client() as client:
        made = await client.create_document("They wait.")
        assert await client.delete_document(made.id)
        assert (await client.search("wait"), await client.count_documents()) == ([], 0)


@pytest.mark.parametrize("content", ["", "  \n\n "])
async def test_a_text_without_anything_in_it_is_refused(place: Place, content: str) -> None:
    async with place.client() as client:
        with pytest.raises(ConversionError, match="^the text is empty.$"):
            await client.create_document(content)
        assert await client.count_documents() == 0


async def test_an_unknown_format_is_refused_with_the_known_ones(place: Place) -> None:
    async with place.client() as client:
        with pytest.raises(ValueError, match="format must be one of 'md', 'html', 'plain', not 'pdf'"):
            await client.create_document("text", format="pdf")  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("metadata", [{"when": object()}, {"x": float("nan")}, {"x": {1, 2}}])
async def test_metadata_that_is_no_json_is_refused_before_anything_is_embedded(
    place: Place, metadata: dict[str, Any]
) -> None:
    async with place.client() as client:
        made = await client.create_document("They wait.")
        count = Counter(place.embedded)
        for use in (
            client.create_document("text", metadata=metadata),
            client.update_document(made.id, metadata=metadata),
            client.import_documents([DocumentImport(content="text", metadata=metadata)]),
        ):
            with pytest.raises(ConversionError, match="the metadata cannot be stored as JSON"):
                await use
        assert place.embedded == count


async def test_imported_documents_bring_their_parts_in_one_commit(place: Place) -> None:
    vector = (await HashEmbedder(name=place.name).embed_documents(["pilots"]))[0].tolist()
    count = Counter(place.embedded)
    item = DocumentItem(ref="pic", label="picture", page=2)
    documents = [
        DocumentImport(
            content="pilots",
            uri="u",
            items=[item],
            chunks=[
                Chunk(id="c", content="pilots", labels=["picture"], doc_item_refs=["pic"], embedding=vector),
            ],
            pictures={"pic": b"PNG"},
            page_images={2: b"PAGE"},
        ),
        DocumentImport(content="They sail.", uri="v"),
        DocumentImport(uri="w", items=[DocumentItem(ref="i", label="paragraph", text="They row.")]),
    ]
    async with place.client() as client:
        first, second, third = await client.import_documents(documents)
        assert place.embedded["contents"] - count["contents"] == 2
        assert place.server.calls["memory://a", "write"] == 1
        assert await client.get_picture_bytes(first.id, "pic") == b"PNG"
        assert await client.get_picture_bytes(first.id, "page/2") == b"PAGE"
        (hit, *_) = await client.search("pilots", include_images=True)
        assert (hit.chunk_id, hit.image_data) == ("c", {"pic": "UE5H"})
        assert {first.source, second.source, third.source} == {"a"}
        chunk = await client.get_chunk_by_id("c")
        assert chunk is not None
        assert chunk.embedding is None
        assert await client.import_documents([]) == []


@pytest.mark.parametrize("embedding", [[1.0], [float("nan")] * 64, [[0.0] * 64]])
async def test_an_embedding_that_does_not_fit_is_refused(place: Place, embedding: Any) -> None:
    chunk = Chunk(content="text").model_copy(update={"embedding": embedding})
    async with place.client() as client:
        with pytest.raises(EmbeddingError, match="the embedding of chunk 0 is not 64 finite numbers"):
            await client.import_documents([DocumentImport(content="text", chunks=[chunk])])


@pytest.mark.parametrize("vectors", [np.zeros((1, 3)), np.full((1, 64), np.inf), np.zeros((2, 64))])
async def test_an_embedder_that_returns_what_does_not_fit_is_at_fault(
    place: Place, vectors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: HashEmbedder, contents: list[str]) -> Any:
        return vectors

    monkeypatch.setattr(HashEmbedder, "embed_documents", broken)
    async with place.client() as client:
        with pytest.raises(EmbeddingError, match="1 of 64 finite numbers were wanted"):
            await client.create_document("text")
        assert await client.count_documents() == 0


async def test_chunks_are_embedded_in_batches(place: Place) -> None:
    text = "\n\n".join(f"Passage {number}." for number in range(5))
    async with place.client(embeddings={"model": {"provider": "hash", "name": place.name}, "batch_size": 2}) as client:
        await client.create_document(text)
    assert (place.embedded["documents"], place.embedded["contents"]) == (3, 5)


async def test_a_file_is_stored_under_its_own_address(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "a b.md"
    path.write_text("# Pilots\n\nThey wait.")
    async with place.client() as client:
        made = await client.create_document_from_source(path, title="t", metadata={"a": 1})
        assert isinstance(made, Document)
        assert (made.uri, made.title, made.metadata) == (path.as_uri(), "t", {"a": 1})
        again = await client.create_document_from_source(path.as_uri())
        assert isinstance(again, Document)
        assert again.id == made.id
    assert place.embedded["documents"] == 1


async def test_a_folder_is_stored_with_one_reported_failure_for_each_file_that_cannot_be_read(
    place: Place, tmp_path: Path
) -> None:
    for name, data in {
        "a.md": b"They wait.",
        "bad.md": b"\xff\xfe\xff",
        "blank.md": b" \n\n ",
        "empty.md": b"",
        "z.txt": b"They sail.",
    }.items():
        (tmp_path / name).write_bytes(data)
    async with place.client() as client:
        results = await client.create_document_from_source(tmp_path)
        assert isinstance(results, IngestResults)
        assert [document.uri for document in results] == [(tmp_path / name).as_uri() for name in ("a.md", "z.txt")]
        assert results.failures == [
            IngestFailure(uri=(tmp_path / "bad.md").as_uri(), reason="'bad.md' is not text in UTF-8."),
            IngestFailure(uri=(tmp_path / "blank.md").as_uri(), reason="'blank.md' holds no text."),
            IngestFailure(uri=(tmp_path / "empty.md").as_uri(), reason="'empty.md' is empty."),
        ]
        assert place.server.calls["memory://a", "write"] == 1
        count = Counter(place.embedded)
        again = await client.create_document_from_source(tmp_path)
        assert isinstance(again, IngestResults)
        assert [document.id for document in again] == [document.id for document in results]
        assert place.embedded == count


async def test_a_folder_is_stored_in_batches_and_steps_tell_how_far_it_is(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("haiku.rag.client.ingest.BATCH_DOCUMENTS", 2)
    for name in ("a.md", "b.md", "c.md"):
        (tmp_path / name).write_text(name)
    async with place.client() as client:
        steps = [step async for step in client.ingest(tmp_path, title="t", metadata={"a": 1})]
    assert [(step.done, step.total, len(step.stored)) for step in steps] == [
        (1, 3, 0),
        (2, 3, 2),
        (3, 3, 0),
        (3, 3, 1),
    ]
    assert {(document.title, document.metadata["a"]) for step in steps for document in step.stored} == {("t", 1)}


async def test_an_empty_folder_gives_an_empty_list(place: Place, tmp_path: Path) -> None:
    async with place.client() as client:
        results = await client.create_document_from_source(tmp_path)
        assert isinstance(results, IngestResults)
        assert (results, results.failures) == ([], [])


async def test_a_source_that_nothing_reads_is_refused(place: Place, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "Makefile").write_bytes(b"all:")
    async with place.client() as client:
        with pytest.raises(
            UnsupportedSourceError, match="no installed plugin reads 'gopher://' sources. Known: a path"
        ):
            await client.create_document_from_source("gopher://host/x")
        with pytest.raises(UnsupportedSourceError, match=r"'a\.png' is of a kind .* \(\.png\). Known: \.md, \.txt"):
            await client.create_document_from_source(tmp_path / "a.png")
        with pytest.raises(UnsupportedSourceError, match=r"'Makefile' is of a kind .* \(no suffix\)"):
            await client.create_document_from_source(tmp_path / "Makefile")
        with pytest.raises(UnsupportedSourceError, match="cannot be read: No such file"):
            await client.create_document_from_source(tmp_path / "none.md")


async def test_without_a_converter_the_command_that_installs_one_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    with pytest.raises(UnsupportedSourceError, match=r"no converter is installed .*haiku-rag-core\[default\]"):
        await HaikuRAG.convert(HaikuRAG.over(_scope(), testing_config({})), tmp_path / "a.md")


def _scope() -> Any:
    from haiku.rag.client import DatabaseScope
    from haiku.rag.contracts import DatabaseRef

    return DatabaseScope((DatabaseRef(name="a", location="memory://a", storage="memory"),))


async def test_without_an_embedder_databases_can_still_be_listed(place: Place) -> None:
    class Storage:
        haiku_rag_register_storage = memory_plugin.haiku_rag_register_storage
        haiku_rag_register_config_section = memory_plugin.haiku_rag_register_config_section

    place.server.create("memory://a")
    config = testing_config({"memory": {"server": place.name, "databases": {"a": "memory://a"}}}, Storage)
    async with HaikuRAG(config=config) as client:
        assert await client.count_documents() == 0
        with pytest.raises(UnknownPluginError, match="no embedder is configured"):
            await client.search("x")


class Typed:
    """A source `typed://` whose documents come with a media type, and a converter for one."""

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    @hookimpl
    def haiku_rag_register_source(self) -> list[SourceRecord]:
        return [SourceRecord(name="typed", summary="s", factory=f"{__name__}:Typed", schemes=("typed",))]

    @hookimpl
    def haiku_rag_register_converter(self) -> list[ConverterRecord]:
        media_types = frozenset({"application/x-shout"})
        return [ConverterRecord(name="shout", summary="s", factory=f"{__name__}:Typed", media_types=media_types)]

    async def discover(self, location: str) -> AsyncIterator[str]:
        yield location

    async def fetch(self, uri: str) -> SourceContent:
        media_type, _, name = uri.removeprefix("typed://").replace("+", "/").partition(":")
        return SourceContent(uri=uri, name=name, data=b"quiet", media_type=media_type or None)

    def convert(self, content: SourceContent) -> ParsedDocument:
        text = content.data.decode().upper()
        return ParsedDocument(items=[DocumentItem(ref="i", label="paragraph", text=text)], content=text)


@pytest.mark.parametrize(
    ("uri", "content"),
    [
        ("typed://application+x-shout:a.md", "QUIET"),
        ("typed://Text+Markdown:a.bin", "quiet"),
        ("typed://text+x-unheard-of:a", "quiet"),
        ("typed://text+plain:a.md", "quiet"),
        ("typed://application+octet-stream:a.md", "quiet"),
    ],
)
async def test_a_converter_is_chosen_by_media_type_then_by_suffix_then_as_text(
    place: Place, uri: str, content: str
) -> None:
    async with place.client(Typed()) as client:
        assert (await client.convert(uri)).content == content
        made = await client.create_document_from_source(uri)
        assert isinstance(made, Document)
        assert made.uri == uri


class Empty:
    """A chunker that gives no chunk, and a converter that fails in its own way."""

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    @hookimpl
    def haiku_rag_register_chunker(self) -> list[ChunkerRecord]:
        return [ChunkerRecord(name="none", summary="s", factory=f"{__name__}:Empty")]

    @hookimpl
    def haiku_rag_register_converter(self) -> list[ConverterRecord]:
        suffixes = frozenset({".odd"})
        return [ConverterRecord(name="odd", summary="s", factory=f"{__name__}:Empty", suffixes=suffixes)]

    def chunk(self, document: ParsedDocument, *, size: int, count_tokens: object) -> list[Chunk]:
        return []

    def convert(self, content: SourceContent) -> ParsedDocument:
        raise KeyError("a defect of the converter")


async def test_no_chunk_from_a_text_is_a_failure(place: Place) -> None:
    async with place.client(Empty(), processing={"chunker": "none"}) as client:
        with pytest.raises(ConversionError, match="cutting it gave no chunk"):
            await client.create_document("text")


async def test_a_converter_that_fails_in_its_own_way_costs_that_document_only(place: Place, tmp_path: Path) -> None:
    (tmp_path / "a.odd").write_text("x")
    (tmp_path / "b.md").write_text("They wait.")
    async with place.client(Empty()) as client:
        results = await client.create_document_from_source(tmp_path)
        assert isinstance(results, IngestResults)
        assert [document.uri for document in results] == [(tmp_path / "b.md").as_uri()]
        (failure,) = results.failures
        assert failure.uri.endswith("a.odd")
        assert "KeyError" in failure.reason


class Hooked:
    """A plugin that changes what passes and remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.refuse: Exception | None = None

    @hookimpl
    async def haiku_rag_before_ingest(self, document: DocumentImport, options: dict[str, Any]) -> Any:
        if self.refuse is not None and "refuse" in document.content:
            raise self.refuse
        return document.model_copy(update={"title": options["title"]}) if "title" in options else None

    @hookimpl
    def haiku_rag_after_ingest(self, document: Document) -> None:
        self.told.append(("stored", document.title, document.source))

    @hookimpl
    async def haiku_rag_after_delete(self, document_id: str, source: str) -> None:
        self.told.append(("deleted", document_id, source))

    @hookimpl
    def haiku_rag_before_search(self, request: Any) -> Any:
        from dataclasses import replace

        return replace(request, query="wait") if request.query == "change me" else None

    @hookimpl
    def haiku_rag_after_search(self, results: SearchResults) -> Any:
        return SearchResults(results[:1], report=results.report)

    @hookimpl
    async def haiku_rag_search_finished(self, request: Any, report: Any) -> None:
        self.told.append(("searched", request.query, len(report.results)))

    @hookimpl
    def haiku_rag_lifespan(self, client: HaikuRAG) -> AbstractAsyncContextManager[None]:
        return self._held(client)

    @asynccontextmanager
    async def _held(self, client: HaikuRAG) -> AsyncIterator[None]:
        self.told.append(("opened", client.source_names))
        yield
        self.told.append(("closed", await client.count_documents()))


async def test_plugins_change_what_passes_and_are_told_what_was_done(place: Place) -> None:
    plugin = Hooked()
    hooks = [{"name": "hooked", "options": {"title": "given"}}]
    async with place.client(testing_plugin(plugin, name="hooked"), hooks=hooks) as client:
        made = await client.create_document("They wait.\n\nWait for them.")
        assert len(await client.search("change me")) == 1
        await client.delete_document(made.id)
        await client.delete_document(made.id)
    assert plugin.told == [
        ("opened", ("a",)),
        ("stored", "given", "a"),
        ("searched", "wait", 2),
        ("deleted", made.id, "a"),
        ("closed", 0),
    ]


@pytest.mark.parametrize("refusal", [ConversionError("not this one."), ValueError("not this one.")])
async def test_a_hook_that_raises_refuses_the_document_and_no_other(
    place: Place, tmp_path: Path, refusal: Exception
) -> None:
    (tmp_path / "a.md").write_text("please refuse me")
    (tmp_path / "b.md").write_text("They wait.")
    plugin = Hooked()
    plugin.refuse = refusal
    async with place.client(testing_plugin(plugin, name="hooked"), hooks=["hooked"]) as client:
        results = await client.create_document_from_source(tmp_path)
        assert isinstance(results, IngestResults)
        assert [document.uri for document in results] == [(tmp_path / "b.md").as_uri()]
        assert [Path(failure.uri).name for failure in results.failures] == ["a.md"]


async def test_a_client_that_cannot_start_a_plugins_lifespan_is_closed(place: Place) -> None:
    class Failing:
        @hookimpl
        def haiku_rag_lifespan(self, client: HaikuRAG) -> AbstractAsyncContextManager[None]:
            return self._failing()

        @asynccontextmanager
        async def _failing(self) -> AsyncIterator[None]:
            raise FilterError("not now")
            yield

    with pytest.raises(FilterError):
        await place.client(Failing()).__aenter__()
    assert place.server.handles("memory://a") == 0


async def test_closing_goes_on_when_something_fails_to_close(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(self: HashEmbedder) -> None:
        raise RuntimeError("hidden words")

    monkeypatch.setattr(HashEmbedder, "close", broken)
    with caplog.at_level(logging.WARNING):
        async with place.client():
            pass
    assert "closing failed: RuntimeError of " in caplog.text
    assert "hidden" not in caplog.text
    assert place.server.handles("memory://a") == 0


async def test_a_client_can_be_entered_again_after_it_was_closed(place: Place) -> None:
    client = place.client()
    for _ in range(2):
        async with client:
            assert await client.count_documents() == 0
    await client.aclose()
    with pytest.raises(RuntimeError, match="the client is not open"):
        await client.count_documents()


async def test_info_tells_what_the_database_holds(place: Place) -> None:
    async with place.client() as client:
        await client.create_document("They wait.\n\nThey sail.")
        info = await client.info()
    assert (info.documents, info.chunks, info.storage) == (1, 2, "memory")


async def test_a_write_that_is_cancelled_stores_nothing(place: Place) -> None:
    async with place.client() as client:
        place.server.slow("memory://a", 3600, "write")
        with anyio.move_on_after(0.05) as scope:
            await client.create_document("They wait.")
        assert scope.cancelled_caught
        place.server.heal("memory://a")
        assert await client.count_documents() == 0


async def test_an_unknown_engine_or_embedder_is_told_with_the_known_ones(place: Place) -> None:
    with pytest.raises(PluginError, match="no embedder 'hsah'. Known: hash. Did you mean 'hash'?"):
        async with place.client(embeddings={"model": {"provider": "hsah"}}) as client:
            await client.create_document("x")


async def test_a_listed_hook_that_is_not_installed_stops_a_folder_at_once(place: Place, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("They wait.")
    async with place.client(hooks=["nowhere"]) as client:
        with pytest.raises(UnknownPluginError, match="no plugin 'nowhere'"):
            await client.create_document_from_source(tmp_path)
