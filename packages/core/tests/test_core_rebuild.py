"""Rebuilding over storage in memory: what is made anew, what is kept, and how an interrupted one goes on."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haiku.rag.client import DocumentImport, HaikuRAG, RebuildMode, RebuildStep
from haiku.rag.contracts import SourceContent
from haiku.rag.errors import (
    AmbiguousDatabaseError,
    ConfigMismatchError,
    ConversionError,
    EmbeddingError,
    PluginError,
    StorageError,
)
from haiku.rag.models import Chunk, DocumentItem
from haiku.rag.plugins import ConfigSectionRecord, SourceRecord, StorageRecord, hookimpl
from haiku.rag.testing import (
    HashEmbedder,
    MemoryDatabase,
    memory_server,
    plugin_without_storage,
    testing_config,
    testing_plugin,
)
from haiku.rag.testing import plugin as memory_plugin

pytestmark = pytest.mark.anyio

FULL, RECHUNK, EMBED_ONLY, REINDEX = RebuildMode


class Place:
    """A database of a test's own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.server = memory_server(name)

    def client(self, *plugins: object, model: str = "words", dimension: int = 64, **sections: Any) -> HaikuRAG:
        data = {
            "memory": {"server": self.name, "databases": {"a": "memory://a"}},
            "embeddings": {"model": {"provider": "hash", "name": model, "vector_dim": dimension}},
            **sections,
        }
        config = testing_config(data, memory_plugin, *plugins)
        return HaikuRAG(config=config, any_embedding=True, create=not self.server.states)

    @property
    def documents(self) -> dict[str | None, Any]:
        """What is stored, by URI."""
        return {stored.row.uri: stored for stored in self.server.states["memory://a"].in_order()}


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Place:
    return Place(request.node.nodeid)


async def all_of(steps: AsyncIterator[RebuildStep]) -> list[RebuildStep]:
    return [step async for step in steps]


def outcomes(steps: list[RebuildStep]) -> list[tuple[str, str]]:
    return [(step.uri, step.outcome) for step in steps]


def small(size: int) -> dict[str, Any]:
    return {"processing": {"chunk_size": size}}


async def test_embed_only_keeps_the_chunks_and_all_else_and_makes_the_vectors_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = [Chunk(id="c", content="pilots", labels=["picture"], doc_item_refs=["pic"], embedding=[0.5] * 64)]
    item = DocumentItem(ref="pic", label="picture", page=2)
    document = DocumentImport(
        content="pilots",
        uri="u",
        title="T",
        metadata={"a": 1},
        items=[item],
        chunks=chunks,
        pictures={"pic": b"PNG"},
        page_images={2: b"PAGE"},
    )
    async with place.client() as client:
        (before,) = await client.import_documents([document])
        old = place.documents["u"].parts
        (step,) = await all_of(client.rebuild(EMBED_ONLY))
        after = await client.get_document_by_id(before.id)
        assert after is not None
        new = place.documents["u"].parts
    assert (step.done, step.total, step.uri, step.outcome, step.document_id) == (1, 1, "u", "rebuilt", before.id)
    assert after == before.model_copy(update={"updated_at": after.updated_at})
    assert after.updated_at > before.updated_at
    assert [chunk.id for chunk in new.chunks] == ["c"]
    assert (new.items, new.pictures, new.page_images) == (old.items, old.pictures, old.page_images)
    assert not np.array_equal(new.vectors, old.vectors)
    assert np.allclose(new.vectors, await HashEmbedder(name="words").embed_documents(["pilots"]))


async def test_rechunk_cuts_what_is_stored_again_and_keeps_pictures_and_page_images(place: Place) -> None:
    text = " ".join(map(str, range(30)))
    document = DocumentImport(
        content=text,
        uri="u",
        title="T",
        pictures={"p": b"1"},
        page_images={1: b"2"},
        items=[DocumentItem(ref="i", label="paragraph", text=text), DocumentItem(ref="p", label="picture")],
    )
    async with place.client() as client:
        await client.import_documents([document])
        assert len(place.documents["u"].parts.chunks) == 1
    async with place.client(**small(16)) as client:
        assert outcomes(await all_of(client.rebuild(RECHUNK))) == [("u", "rebuilt")]
    parts = place.documents["u"].parts
    assert [chunk.content for chunk in parts.chunks] == [
        " ".join(map(str, range(16))),
        " ".join(map(str, range(16, 30))),
    ]
    assert (parts.pictures, parts.page_images, parts.title) == ({"p": b"1"}, {1: b"2"}, "T")


async def test_a_document_with_nothing_to_cut_keeps_its_own_chunks(place: Place) -> None:
    async with place.client() as client:
        await client.import_documents([DocumentImport(uri="u", chunks=[Chunk(id="c", content="own")])])
        await all_of(client.rebuild(RECHUNK))
    assert [chunk.id for chunk in place.documents["u"].parts.chunks] == ["c"]


async def test_full_fetches_the_source_again_and_keeps_what_was_said_of_the_document(
    place: Place, tmp_path: Path
) -> None:
    path = tmp_path / "a.md"
    path.write_text("# Old\n\nThey wait.")
    async with place.client() as client:
        made = await client.create_document_from_source(path, title="Mine", metadata={"a": 1})
        path.write_text("# New\n\nThey sail.")
        assert outcomes(await all_of(client.rebuild())) == [(path.as_uri(), "rebuilt")]
        (after,) = await client.list_documents(include_content=True)
        assert (after.id, after.title, after.metadata) == (made.id, "Mine", {"a": 1})  # type: ignore[union-attr]
        assert (after.content, after.content_hash != made.content_hash) == ("# New\n\nThey sail.", True)  # type: ignore[union-attr]
        assert after.created_at == made.created_at  # type: ignore[union-attr]
        again = await client.create_document_from_source(path, title="Mine", metadata={"a": 1})
        assert again == after


async def test_a_source_that_cannot_be_had_falls_back_on_what_is_stored_and_is_reported(
    place: Place, tmp_path: Path
) -> None:
    gone, empty = tmp_path / "gone.md", tmp_path / "empty.md"
    async with place.client() as client:
        for path in (gone, empty):
            path.write_text("They wait.")
            await client.create_document_from_source(path)
        await client.create_document("They sail.", uri="notes.md")
        await client.create_document("They row.", title="Untold")
        gone.unlink()
        empty.write_text("")
        steps = await all_of(client.rebuild(FULL))
        contents = [document.content for document in await client.list_documents(include_content=True)]
    assert [step.outcome for step in steps] == ["rebuilt"] * 4
    assert [step.uri for step in steps] == [gone.as_uri(), empty.as_uri(), "notes.md", "Untold"]
    note = "its source could not be used, so it was rebuilt from what is stored:"
    assert [step.reason for step in steps] == [
        f"{note} '{gone}' cannot be read: No such file or directory.",
        f"{note} 'empty.md' is empty.",
        "",
        "",
    ]
    assert contents == ["They wait.", "They wait.", "They sail.", "They row."]


class Web:
    """A source `web://` that answers with a text, from an address of its own."""

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    @hookimpl
    def haiku_rag_register_source(self) -> list[SourceRecord]:
        return [SourceRecord(name="web", summary="s", factory=f"{__name__}:Web", schemes=("web",))]

    async def fetch(self, uri: str) -> SourceContent:
        return SourceContent(uri=f"{uri}/canonical", name="page.md", data=b"They fly.", media_type="text/markdown")


async def test_a_url_is_fetched_again_and_messages_leave_its_secrets_out(place: Place) -> None:
    async with place.client(Web()) as client:
        await client.create_document("They wait.", uri="web://user:secret@host/page?key=secret")
        (step,) = await all_of(client.rebuild(FULL))
        (after,) = await client.list_documents(include_content=True)
    assert (step.uri, step.reason) == ("web://host/page", "")
    assert (after.uri, after.content) == ("web://user:secret@host/page?key=secret", "They fly.")


class Marking:
    """A plugin that marks what is ingested, and refuses some of it."""

    @hookimpl
    def haiku_rag_before_ingest(self, document: DocumentImport) -> DocumentImport:
        if "refused" in document.content:
            raise ConversionError("not this one")
        return document.model_copy(update={"metadata": {**document.metadata, "seen": True}})


async def test_hooks_see_what_comes_from_a_source_and_nothing_that_comes_from_the_store(
    place: Place, tmp_path: Path
) -> None:
    path = tmp_path / "a.md"
    path.write_text("They wait.")
    async with place.client() as client:
        await client.create_document_from_source(path)
        await client.create_document("They sail.", uri="u")
    async with place.client(testing_plugin(Marking(), name="marking"), hooks=["marking"]) as client:
        await all_of(client.rebuild(FULL))
        first, second = await client.list_documents()
        assert (first.metadata, second.metadata) == ({"seen": True}, {})
        path.write_text("refused")
        steps = await all_of(client.rebuild(FULL))
        assert "rebuilt from what is stored: not this one" in steps[0].reason


async def test_a_document_that_fails_is_reported_and_the_rest_is_rebuilt(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.client() as client:
        for text in ("They wait.", "poison", "They sail."):
            await client.create_document(text, uri=text)
        failing(monkeypatch, "poison")
        steps = await all_of(client.rebuild(RECHUNK))
        assert outcomes(steps) == [("They wait.", "rebuilt"), ("poison", "failed"), ("They sail.", "rebuilt")]
        assert steps[1].reason == "no vector for it."
        assert place.server.states["memory://a"].job is None


def failing(monkeypatch: pytest.MonkeyPatch, word: str, error: Exception | None = None) -> None:
    """Let the embedder fail for texts with a word."""
    embed = HashEmbedder.embed_documents

    async def embed_documents(self: HashEmbedder, contents: Any) -> Any:
        if any(word in str(content) for content in contents):
            raise error or EmbeddingError("no vector for it.")
        return await embed(self, contents)

    monkeypatch.setattr(HashEmbedder, "embed_documents", embed_documents)


async def test_what_is_no_documents_failure_is_raised_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place.client() as client:
        for text in ("They wait.", "poison"):
            await client.create_document(text, uri=text)
        failing(monkeypatch, "poison", PluginError("the embedder is broken."))
        with pytest.raises(PluginError, match=r"^the embedder is broken\.$"):
            await all_of(client.rebuild(RECHUNK))


async def test_an_interrupted_rebuild_goes_on_with_the_same_mode(place: Place) -> None:
    async with place.client() as client:
        for number in range(10):
            await client.create_document(f"They wait {number}.", uri=f"{number}")
        await client.create_document("They come from a clock that is ahead.", uri="10")
        ahead = place.documents["10"].row
        state = place.server.states["memory://a"]
        state.put(
            ahead.model_copy(update={"updated_at": ahead.updated_at + timedelta(days=1)}), place.documents["10"].parts
        )
        broken = client.rebuild(RECHUNK)
        done = [(await anext(broken)).uri for _ in range(6)]
        await broken.aclose()  # type: ignore[attr-defined]  # it is a generator
        steps = await all_of(client.rebuild(RECHUNK))
        assert steps[0].outcome == "note"
        assert steps[0].reason.startswith("the rebuild (rechunk) that was begun at ")
        assert steps[0].reason.endswith(" goes on")
        assert [step.uri for step in steps[1:]] == [str(number) for number in range(11) if str(number) not in done]
        assert (steps[1].done, steps[-1].done, steps[-1].total) == (7, 11, 11)
        assert state.job is None


async def test_another_mode_says_what_it_gives_up_and_starts_anew(place: Place) -> None:
    async with place.client() as client:
        for number in range(3):
            await client.create_document(f"They wait {number}.", uri=f"{number}")
        broken = client.rebuild(RECHUNK)
        await anext(broken)
        await broken.aclose()  # type: ignore[attr-defined]  # it is a generator
        note, *steps = await all_of(client.rebuild(EMBED_ONLY))
        assert "and not finished, for hash/words, 64 dimensions, is given up; this one starts anew" in note.reason
        assert len(steps) == 3
        place.server.states["memory://a"].job = "a job that means nothing"
        assert len(await all_of(client.rebuild(EMBED_ONLY))) == 3


async def test_what_another_writer_changes_meanwhile_is_left(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place.client() as client:
        changed = await client.create_document("They wait.", uri="changed")
        gone = await client.create_document("They sail.", uri="gone")
        await client.create_document("They row.", uri="stays")
        parts, rewrite = MemoryDatabase.parts, MemoryDatabase.rewrite

        async def deleted(self: MemoryDatabase, document_id: str) -> Any:
            if document_id == gone.id:
                await self.delete(gone.id)
            return await parts(self, document_id)

        async def renamed(self: MemoryDatabase, document: Any, *, seen: Any) -> Any:
            if seen.id == changed.id:
                await self.update(changed.id, uri=None, title="renamed", metadata=None)
            return await rewrite(self, document, seen=seen)

        monkeypatch.setattr(MemoryDatabase, "parts", deleted)
        monkeypatch.setattr(MemoryDatabase, "rewrite", renamed)
        steps = await all_of(client.rebuild(RECHUNK))
        assert outcomes(steps) == [("changed", "left"), ("gone", "left"), ("stays", "rebuilt")]
        assert steps[0].reason == "another writer has changed or deleted it meanwhile"
        assert place.documents["changed"].row.title == "renamed"


@pytest.mark.parametrize("mode", [FULL, RECHUNK, EMBED_ONLY])
async def test_another_embedding_is_seen_when_all_of_it_is_there(place: Place, mode: RebuildMode) -> None:
    async with place.client() as client:
        before = [await client.create_document(f"They wait {number}.", uri=f"{number}") for number in range(6)]
    async with place.client(model="other", dimension=16) as client:
        for use in (client.search("wait"), client.create_document("more"), client.info()):
            with pytest.raises(ConfigMismatchError):
                await use
        rebuilding = client.rebuild(mode)
        await anext(rebuilding)
        assert place.server.states["memory://a"].identity.dimension == 64  # type: ignore[union-attr]
        rest = await all_of(rebuilding)
        assert outcomes(rest) == [(str(number), "rebuilt") for number in range(1, 6)]
        assert await client.list_documents(include_content=True) == before
        assert len(await client.search("wait", limit=10)) == 6
        info = await client.info()
        assert info.identity is not None
        assert (info.identity.model, info.identity.dimension) == ("other", 16)
        assert place.server.states["memory://a"].job is None


async def test_an_interrupted_rebuild_with_another_embedding_goes_on(place: Place) -> None:
    async with place.client() as client:
        for number in range(10):
            await client.create_document(f"They wait {number}.", uri=f"{number}")
    async with place.client(dimension=16) as client:
        broken = client.rebuild(EMBED_ONLY)
        for _ in range(5):
            await anext(broken)
        await broken.aclose()  # type: ignore[attr-defined]  # it is a generator
    async with place.client() as client:
        await client.update_document((await client.list_documents())[0].id, title="changed")
        await client.delete_document((await client.list_documents())[1].id)
    async with place.client(dimension=16) as client:
        note, *steps = await all_of(client.rebuild(EMBED_ONLY))
        assert note.reason.endswith(" goes on")
        assert [step.uri for step in steps] == ["0", "8", "9"]
        assert [document.uri for document in await client.list_documents()] == ["0", *map(str, range(2, 10))]
        assert (await client.list_documents())[0].title == "changed"


async def test_another_mode_or_embedding_throws_away_what_was_staged(place: Place) -> None:
    async with place.client() as client:
        for number in range(6):
            await client.create_document(f"They wait {number}.", uri=f"{number}")
    for mode, dimension in ((EMBED_ONLY, 16), (RECHUNK, 16), (RECHUNK, 32), (RECHUNK, 64)):
        async with place.client(dimension=dimension) as client:
            broken = client.rebuild(mode)
            first = await anext(broken)
            if first.outcome == "note":
                assert "is given up" in first.reason
                first = await anext(broken)
            assert first.uri == "0"
            await broken.aclose()  # type: ignore[attr-defined]  # it is a generator
    assert "memory://a#staged" not in place.server.states


async def test_a_document_that_fails_keeps_the_old_embedding_and_the_same_command_goes_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.client() as client:
        for text in ("They wait.", "poison", "They sail."):
            await client.create_document(text, uri=text)
    async with place.client(dimension=16) as client:
        with monkeypatch.context() as patch:
            failing(patch, "poison")
            *steps, note = await all_of(client.rebuild(RECHUNK))
        assert [step.outcome for step in steps] == ["rebuilt", "failed", "rebuilt"]
        assert note.reason == (
            "database 'a' keeps its embedding, because documents failed: 1. Put them right or delete them, then go on "
            "with the same command"
        )
        assert place.server.states["memory://a"].identity.dimension == 64  # type: ignore[union-attr]
        _, step = await all_of(client.rebuild(RECHUNK))
        assert (step.uri, step.outcome) == ("poison", "rebuilt")
        assert len(await client.search("poison")) == 3


async def test_what_changes_before_the_end_is_caught_up_with(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place.client() as client:
        for text in ("They wait.", "They sail."):
            await client.create_document(text, uri=text)
    adopt = MemoryDatabase.adopt

    async def late(self: MemoryDatabase, *, catch_up: Any) -> bool:
        monkeypatch.setattr(MemoryDatabase, "adopt", adopt)
        await self.update(place.documents["They sail."].row.id, uri=None, title="changed", metadata=None)
        return await adopt(self, catch_up=catch_up)

    monkeypatch.setattr(MemoryDatabase, "adopt", late)
    async with place.client(dimension=16) as client:
        steps = await all_of(client.rebuild(RECHUNK))
        assert outcomes(steps) == [("They wait.", "rebuilt"), ("They sail.", "rebuilt"), ("They sail.", "rebuilt")]
        assert [document.title for document in await client.list_documents()] == [None, "changed"]
        assert len(await client.search("sail")) == 2


async def test_a_document_that_fails_while_catching_up_keeps_the_old_embedding(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.client() as client:
        await client.create_document("They wait.", uri="u")
    adopt = MemoryDatabase.adopt

    async def late(self: MemoryDatabase, *, catch_up: Any) -> bool:
        failing(monkeypatch, "wait")
        await self.update(place.documents["u"].row.id, uri=None, title="changed", metadata=None)
        return await adopt(self, catch_up=catch_up) or await adopt(self, catch_up=catch_up)

    monkeypatch.setattr(MemoryDatabase, "adopt", late)
    async with place.client(dimension=16) as client:
        steps = await all_of(client.rebuild(RECHUNK))
        assert [step.outcome for step in steps] == ["rebuilt", "failed", "note"]
        assert "keeps its embedding, because documents failed: 1" in steps[-1].reason


async def test_documents_that_keep_changing_end_it_with_a_sentence(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.client() as client:
        made = await client.create_document("They wait.", uri="u")
    adopt = MemoryDatabase.adopt

    async def late(self: MemoryDatabase, *, catch_up: Any) -> bool:
        async def again() -> None:
            await self.update(made.id, uri=None, title="changed", metadata=None)

        await again()
        return await adopt(self, catch_up=again)

    monkeypatch.setattr(MemoryDatabase, "adopt", late)
    async with place.client(dimension=16) as client:
        with pytest.raises(StorageError, match="documents of database 'a' kept changing. Stop what writes them"):
            await all_of(client.rebuild(RECHUNK))


async def test_an_empty_database_takes_another_embedding(place: Place) -> None:
    async with place.client():
        pass
    async with place.client(dimension=16) as client:
        assert await all_of(client.rebuild()) == []
        await client.create_document("They wait.")
        assert len(await client.search("wait")) == 1


async def test_a_rebuild_needs_one_live_database_that_the_client_may_write(place: Place) -> None:
    data = {"memory": {"server": place.name, "databases": {"a": "memory://a", "b": "memory://b"}}}
    async with HaikuRAG(config=testing_config(data, memory_plugin)) as client:
        with pytest.raises(AmbiguousDatabaseError, match="rebuilding"):
            await all_of(client.rebuild())
    async with place.client() as client:
        with pytest.raises(ValueError, match="'nothing' is not a valid RebuildMode"):
            await all_of(client.rebuild("nothing"))  # type: ignore[arg-type]  # the point of the test


class BareStorage:
    @hookimpl
    def haiku_rag_register_storage(self) -> list[StorageRecord]:
        factory = "haiku.rag.testing.memory:MemoryStorage"
        return [StorageRecord(name="bare", summary="", factory=factory, sections=("memory",), standalone=True)]

    @hookimpl
    def haiku_rag_register_config_section(self) -> list[ConfigSectionRecord]:
        return list(memory_plugin.haiku_rag_register_config_section())


async def test_an_engine_that_cannot_rebuild_says_so_in_one_sentence(place: Place) -> None:
    data = {"memory": {"server": place.name, "databases": {"a": "memory://a"}}}
    config = testing_config(data, plugin_without_storage, BareStorage())
    async with HaikuRAG(config=config, create=True) as client:
        for mode, name in ((FULL, "full"), (REINDEX, "reindex")):
            with pytest.raises(StorageError) as caught:
                await all_of(client.rebuild(mode))
            assert str(caught.value) == (
                f"rebuilding ({name}) is not offered by storage 'bare', which holds database 'a'."
            )
            assert caught.value.source == "a"


async def test_reindex_builds_the_indexes_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    async def create_index(self: MemoryDatabase) -> dict[str, str]:
        built.append("index")
        return {}

    class Indexed(BareStorage):
        @hookimpl
        def haiku_rag_register_storage(self) -> list[StorageRecord]:
            (record,) = super().haiku_rag_register_storage()
            return [StorageRecord(**{**vars(record), "capabilities": frozenset({"upkeep"})})]

    monkeypatch.setattr(MemoryDatabase, "create_index", create_index, raising=False)
    data = {"memory": {"server": place.name, "databases": {"a": "memory://a"}}}
    async with HaikuRAG(config=testing_config(data, plugin_without_storage, Indexed()), create=True) as client:
        assert [step.reason for step in await all_of(client.rebuild(REINDEX))] == ["every index was built again"]
    assert built == ["index"]
