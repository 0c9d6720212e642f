"""Contract C4: databases of different embeddings, searched together where the configuration allows it."""

import logging
import re
from collections.abc import Sequence
from typing import Any, ClassVar

import anyio
import numpy as np
import pyarrow as pa
import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.contracts import FusionContext, RerankCandidate
from haiku.rag.errors import ConfigMismatchError, EmbeddingError, SourceUnavailableError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.plugins import EmbedderRecord, FusionRecord, RerankerRecord, hookimpl
from haiku.rag.testing import HashEmbedder, embedding_calls, testing_config
from haiku.rag.testing import plugin as memory_plugin

from .world import QUERY, World, ids

pytestmark = pytest.mark.anyio
ALLOW = {"search": {"mixed_embedders": "allow"}}


class Providers:
    """A plugin with the embedders `ollama` and `vllm`, which see everything alike, and `turned`, which does not."""

    @hookimpl
    def haiku_rag_register_embedder(self) -> list[EmbedderRecord]:
        return [
            EmbedderRecord(name=made.provider, summary="s", factory=f"{__name__}:{made.__name__}")
            for made in (Ollama, Vllm, Turned, Broken, Liar, Reading)
        ]

    @hookimpl
    def haiku_rag_register_reranker(self) -> list[RerankerRecord]:
        return [RerankerRecord(name="longest", summary="s", factory=f"{__name__}:Longest")]

    @hookimpl
    def haiku_rag_register_fusion(self) -> list[FusionRecord]:
        return [
            FusionRecord(name="strangers", summary="s", factory="haiku.rag.fusion.cosine:CosineFusion"),
            FusionRecord(name="told", summary="s", factory=f"{__name__}:Told"),
        ]


class Ollama(HashEmbedder):
    provider = "ollama"
    configs: ClassVar[list[AppConfig]] = []

    def __init__(self, config: AppConfig) -> None:
        super().__init__(config)
        Ollama.configs.append(config)

    @property
    def identity(self) -> EmbeddingIdentity:
        told = super().identity
        return EmbeddingIdentity(
            provider=self.provider,
            model=told.model,
            dimension=told.dimension,
            document_prefix=told.document_prefix,
        )


class Vllm(Ollama):
    provider = "vllm"


class Turned(Ollama):
    provider = "turned"

    async def embed_query(self, query: str | bytes) -> Any:
        return np.roll(await super().embed_query(query), 7)


class Broken(Ollama):
    provider = "broken"

    async def embed_query(self, query: str | bytes) -> Any:
        raise ConnectionError("http://hidden:11434")


class Liar(Ollama):
    provider = "liar"

    @property
    def identity(self) -> EmbeddingIdentity:
        return EmbeddingIdentity(provider="liar", model="another", dimension=8)


class Reading(Ollama):
    """Says of itself, in its model's name, how much it reads."""

    provider = "reading"

    def reads(self, text: str) -> float:
        return float(self.identity.model.partition("-tests")[0])


class Told:
    """A fusion that remembers what it was told the model reads."""

    readable: ClassVar[list[float]] = []

    def __init__(self, config: object) -> None:
        """Takes nothing from the configuration."""

    def scale(self, context: FusionContext) -> tuple[float, float]:
        return (0.0, 1.0)

    def fuse(self, pool: pa.Table, context: FusionContext) -> Any:
        Told.readable.append(context.readable)
        return np.ones(pool.num_rows)


class Longest:
    """A reranker for which the longest passage is the best one."""

    scale = None

    def __init__(self, config: object) -> None:
        """Takes nothing from the configuration."""

    async def rerank(self, query: str, candidates: Sequence[RerankCandidate], limit: int) -> Any:
        return [(index, float(len(candidate.text))) for index, candidate in enumerate(candidates)]

    async def close(self) -> None:
        """Nothing is held."""


def named(world: World, name: str) -> str:
    """A model of this test's own."""
    return f"{name}-{world.name}"


async def filled(world: World, database: str, provider: str, model: str, dimension: int = 64, **cosines: float) -> None:
    """A database that records an embedding, with passages at these cosines to the query."""
    world.use_model(named(world, model), dimension=dimension)
    identity = EmbeddingIdentity(provider=provider, model=world.model, dimension=dimension)
    world.empty(database, identity=identity)
    await world.near(database, **cosines)
    embedding_calls(world.model).clear()


async def two_dimensions(world: World) -> World:
    """`b` with 12 dimensions, `a`, which is configured, with 8."""
    await filled(world, "b", "hash", "m2", 12, three=0.95, four=0.2)
    await filled(world, "a", "hash", "m1", 8, one=0.9, two=0.1)
    return world


def client(world: World, *databases: str, **sections: Any) -> HaikuRAG:
    merged = {**ALLOW, **sections}
    dimension = world.embedder.identity.dimension
    model = {"provider": "hash", "name": world.model, "vector_dim": dimension}
    merged["embeddings"] = {"model": model, **sections.get("embeddings", {})}
    return HaikuRAG(config=world.config(databases, Providers(), **merged), read_only=True)


def query_calls(world: World, *models: str) -> list[int]:
    return [embedding_calls(named(world, model))["query"] for model in models]


@pytest.mark.parametrize("search_type", ["hybrid", "vector"])
async def test_C4_case_3_two_embedders_answer_together_each_asked_once(world: World, search_type: Any) -> None:
    await two_dimensions(world)
    async with client(world, "a", "b") as reader:
        found = await reader.search(QUERY, search_type=search_type)
    assert ids(found) == [("a", "one"), ("b", "three"), ("a", "two"), ("b", "four")]
    assert query_calls(world, "m1", "m2") == [1, 1]
    similarity = {entry.chunk_id: entry.similarity for entry in found.report.results}
    assert similarity == pytest.approx({"one": 0.9, "two": 0.1, "three": 0.95, "four": 0.2}, abs=1e-6)


async def test_C4_case_3_without_the_switch_it_is_an_error_that_names_both(world: World) -> None:
    await two_dimensions(world)
    async with client(world, "a", "b", search={}) as reader:
        with pytest.raises(ConfigMismatchError, match=r"database 'b'.*12 dimensions.*8 dimensions"):
            await reader.search(QUERY)


async def test_C4_several_models_and_no_reranker_are_merged_by_rank_with_a_warning(world: World) -> None:
    await two_dimensions(world)
    async with client(world, "a", "b") as reader:
        found = await reader.search(QUERY)
    assert [hit.score for hit in found] == pytest.approx([1 / 61, 1 / 61, 1 / 62, 1 / 62])
    assert found.report.fusion == "rrf"
    (warning,) = found.report.warnings
    assert warning == (
        "the databases were written with 2 embedding models, whose similarities do not compare: 'cosine' was not used "
        "across them, their lists were merged by rank ('rrf')."
    )


async def test_C4_the_databases_of_one_model_keep_the_order_that_they_have_alone(world: World) -> None:
    await filled(world, "c", "hash", "m2", 12, five=0.9, six=0.1)
    await filled(world, "b", "hash", "m1", 8, three=0.2)
    await filled(world, "a", "hash", "m1", 8, one=0.8, two=0.4)
    async with client(world, "a", "b", "c") as reader:
        alone = await reader.search(QUERY, sources=["a", "b"])
        assert (alone.report.fusion, alone.report.warnings) == ("cosine", [])
        together = await reader.search(QUERY, limit=10)
    assert [hit for hit in ids(together) if hit[0] != "c"] == ids(alone) == [("a", "one"), ("a", "two"), ("b", "three")]
    assert ids(together) == [("a", "one"), ("c", "five"), ("a", "two"), ("c", "six"), ("b", "three")]


async def test_C4_a_fusion_that_compares_no_similarities_is_used_as_it_is(world: World) -> None:
    await two_dimensions(world)
    async with client(world, "a", "b") as reader:
        found = await reader.search(QUERY, search_type="vector", fusion="rrf")
        assert (found.report.fusion, found.report.warnings) == ("rrf", [])
        replaced = await reader.search(QUERY, search_type="vector", fusion="strangers")
        assert replaced.report.fusion == "rrf"
        assert "'strangers' was not used" in replaced.report.warnings[0]


async def test_C4_models_that_offer_nothing_do_not_force_a_merge_by_rank(world: World) -> None:
    await filled(world, "b", "hash", "m2", 12)
    await filled(world, "a", "hash", "m1", 8, one=0.9)
    async with client(world, "a", "b") as reader:
        found = await reader.search(QUERY)
    assert (found.report.fusion, found.report.warnings) == ("cosine", [])
    assert found[0].score == pytest.approx(0.9, abs=1e-6)


async def test_C4_a_reranker_merges_what_different_models_found(world: World) -> None:
    await two_dimensions(world)
    async with client(world, "a", "b", reranking={"model": {"provider": "longest"}}) as reader:
        found = await reader.search(QUERY, limit=2)
    assert [hit.chunk_id for hit in found] == ["three", "four"]
    assert (found.report.rerank, found.report.warnings) == ("ok", [])


async def test_C4_a_reranker_that_fails_leaves_the_merge_by_rank_and_its_warning(world: World) -> None:
    await two_dimensions(world)
    reranking = {"model": {"provider": "overlap"}}  # the passages hold no word of the query: one score for all
    async with client(world, "a", "b", reranking=reranking) as reader:
        found = await reader.search(QUERY)
    assert found.report.rerank.startswith("failed (")
    assert "merged by rank" in found.report.warnings[0]
    assert ids(found)[:2] == [("a", "one"), ("b", "three")]


async def test_C4_full_text_needs_no_embedder_and_no_merge_by_rank(world: World) -> None:
    world.use_model(named(world, "m2"), dimension=12)
    world.empty("b", identity=EmbeddingIdentity(provider="nowhere", model="x", dimension=12))
    await world.text("b", two="pilots")
    world.use_model(named(world, "m1"), dimension=8)
    await world.text("a", one="harbour pilots")
    async with client(world, "a", "b") as reader:
        found = await reader.search("pilots", search_type="fts")
    assert {hit.source for hit in found} == {"a", "b"}
    assert (found.report.fusion, found.report.warnings) == ("cosine", [])


async def test_C4_case_4_one_model_under_two_names_is_searched_together_with_one_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(world, "b", "vllm", "org/mx", three=0.7)
    await filled(world, "a", "ollama", "mx", one=0.9, two=0.3)
    with caplog.at_level(logging.INFO):
        async with client(world, "a", "b") as reader:
            for _ in range(2):
                found = await reader.search(QUERY)
    assert ids(found) == [("a", "one"), ("b", "three"), ("a", "two")]
    assert [hit.score for hit in found] == pytest.approx([0.9, 0.7, 0.3], abs=1e-6)
    assert found.report.fusion == "cosine"
    (warning,) = found.report.warnings
    assert warning.startswith("embeddings of other names that see the query alike were taken for one ('a': ollama/mx")
    assert "; 'b': vllm/org/mx" in warning
    assert caplog.records == []


async def test_C4_models_of_one_dimension_that_see_the_query_differently_are_two(world: World) -> None:
    await filled(world, "b", "turned", "mx", three=0.7)
    await filled(world, "a", "ollama", "mx", one=0.9)
    async with client(world, "a", "b") as reader:
        assert (await reader.search(QUERY)).report.fusion == "rrf"


async def test_C4_one_database_is_searched_with_its_own_model(world: World) -> None:
    await filled(world, "b", "turned", "m2", three=0.7)
    await filled(world, "a", "hash", "m1", one=0.9)
    async with client(world, "a", "b") as reader:
        found = await reader.search(QUERY, sources=["b"], search_type="vector")
    # The passages lie at their cosines to the query as the model sees it unturned.
    assert found[0].score != pytest.approx(0.7, abs=1e-3)
    assert query_calls(world, "m1", "m2") == [0, 1]


async def test_C4_a_database_that_records_nothing_is_searched_with_the_configured_model(world: World) -> None:
    await filled(world, "b", "hash", "m2", 12, three=0.7)
    await filled(world, "a", "hash", "m1", 8, one=0.9)
    world.server.states["memory://a"].identity = None
    async with client(world, "a", "b") as reader:
        assert len(await reader.search(QUERY)) == 2
    assert query_calls(world, "m1", "m2") == [1, 1]


async def test_C4_a_listed_model_serves_the_identity_that_it_has(world: World) -> None:
    await filled(world, "b", "ollama", "m2", 12, three=0.7)
    await filled(world, "a", "hash", "m1", 8, one=0.9)
    Ollama.configs.clear()
    other = {"provider": "ollama", "name": named(world, "m2"), "vector_dim": 12, "query_prefix": "query: "}
    unused = {"provider": "ollama", "name": named(world, "m3"), "vector_dim": 12}
    async with client(world, "a", "b", embeddings={"others": [unused, other]}) as reader:
        await reader.search(QUERY)
        await reader.search(QUERY)
    assert [config.embeddings.model.name for config in Ollama.configs] == [named(world, "m3"), named(world, "m2")]
    assert query_calls(world, "m1", "m2", "m3") == [2, 2, 0]


async def test_C4_without_one_an_embedder_is_made_of_the_identity_at_the_address_of_its_provider(world: World) -> None:
    await filled(world, "b", "ollama", "m2", 12, three=0.7)
    await filled(world, "a", "hash", "m1", 8, one=0.9)
    Ollama.configs.clear()
    service = {"provider": "ollama", "name": "m9", "vector_dim": 12, "base_url": "http://here", "api_key": "k"}
    async with client(world, "a", "b", embeddings={"others": [service]}) as reader:
        await reader.search(QUERY)
    made = Ollama.configs[-1].embeddings.model
    assert (made.provider, made.name, made.vector_dim) == ("ollama", named(world, "m2"), 12)
    assert made.base_url == "http://here"
    assert made.api_key is not None
    assert made.api_key.get_secret_value() == "k"


async def test_C4_databases_that_differ_in_the_document_prefix_alone_share_one_embedder(world: World) -> None:
    await filled(world, "b", "hash", "m1", three=0.7)
    await filled(world, "a", "hash", "m1", one=0.9)
    world.server.states["memory://b"].identity = world.other(document_prefix="passage: ")
    async with client(world, "a", "b") as reader:
        found = await reader.search(QUERY)
    assert (found.report.fusion, query_calls(world, "m1")) == ("cosine", [1])
    assert "document prefix 'passage: '" in found.report.warnings[0]


NO_EMBEDDER = {
    "nowhere": r"No embedder 'nowhere'\. Known: .*",
    "liar": r"The nearest one is liar/another, 8 dimensions\. ",
    "   ": "",
}


@pytest.mark.parametrize("provider", NO_EMBEDDER)
async def test_C4_an_identity_that_no_embedder_has_says_what_to_add(world: World, provider: str) -> None:
    await filled(world, "b", provider, "m2", 12, three=0.7)
    await filled(world, "a", "hash", "m1", 8, one=0.9)
    async with client(world, "a", "b") as reader:
        with pytest.raises(ConfigMismatchError) as caught:
            await reader.search(QUERY)
        assert caught.value.source == "b"
        assert str(caught.value).startswith(f"database 'b' was written with {provider}/{named(world, 'm2')}, 12 dim")
        assert str(caught.value).endswith("Add its model to embeddings.others, or search by full text.")
        found = await reader.search(QUERY, on_unavailable="skip")
        assert ids(found) == [("a", "one")]
        assert [(entry.name, entry.status) for entry in found.report.left_out] == [("b", "unavailable")]
    assert re.search(NO_EMBEDDER[provider], str(caught.value))


async def test_C4_an_embedder_that_fails_costs_its_own_databases_only(world: World) -> None:
    for name in ("b", "c"):
        await filled(world, name, "broken", "m2", 12, three=0.7)
    await filled(world, "a", "hash", "m1", 8, one=0.9)
    async with client(world, "a", "b", "c") as reader:
        found = await reader.search(QUERY, on_unavailable="skip")
        assert ids(found) == [("a", "one")]
        assert [entry.name for entry in found.report.left_out] == ["b", "c"]
        assert found.report.left_out[0].reason == "the embedder 'broken' failed (ConnectionError)."
        for answer in ("raise", ["b"]):
            with pytest.raises(EmbeddingError, match=r"^the embedder 'broken' failed \(ConnectionError\)\.$"):
                await reader.search(QUERY, on_unavailable=answer)
        with pytest.raises(EmbeddingError):
            await reader.search(QUERY, sources=["b", "c"], on_unavailable="skip")


async def test_C4_an_embedders_own_sentence_is_the_reason(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: Broken, query: str | bytes) -> Any:
        raise EmbeddingError("the service refused the key.")

    monkeypatch.setattr(Broken, "embed_query", refuse)
    await filled(world, "b", "broken", "m2", 12, three=0.7)
    await filled(world, "a", "hash", "m1", 8, one=0.9)
    async with client(world, "a", "b") as reader:
        found = await reader.search(QUERY, on_unavailable="skip")
    assert [entry.reason for entry in found.report.left_out] == ["the service refused the key."]


async def test_C4_different_failures_are_told_together(world: World) -> None:
    await filled(world, "b", "broken", "m2", 12, three=0.7)
    await filled(world, "a", "nowhere", "m1", 8, one=0.9)
    async with client(world, "a", "b") as reader:
        with pytest.raises(SourceUnavailableError, match=r"database 'a' was written with .*; the embedder 'broken'"):
            await reader.search(QUERY)


async def test_C4_an_image_is_looked_for_where_the_model_reads_images(world: World) -> None:
    await filled(world, "b", "hash", "m2", 12, three=0.7)
    world.use_model(f"image-{world.name}", dimension=8)
    await world.text("a", one="harbour pilots")
    async with client(world, "a", "b") as reader:
        found = await reader.search(b"harbour pilots")
        assert ids(found) == [("a", "one")]
        assert [(entry.name, entry.status) for entry in found.report.databases] == [("a", "ok"), ("b", "empty")]
        assert found.report.warnings == ["'b': not searched, the embedder 'hash' reads text only."]
        with pytest.raises(ValueError, match="the embedder 'hash' reads text only, and the query is an image"):
            await reader.search(b"harbour pilots", sources=["b"])


async def test_C4_writing_uses_the_configured_model_and_holds_a_database_to_it(world: World) -> None:
    await two_dimensions(world)
    config = client(world, "a", "b").config
    for create in (False, True):
        with pytest.raises(ConfigMismatchError, match="or open it for reading only"):
            await HaikuRAG(config=config, sources=["b"], create=create).__aenter__()
    async with HaikuRAG(config=config, sources=["a"]) as writer:
        await writer.create_document("harbour pilots")
    assert query_calls(world, "m1", "m2") == [0, 0]


async def test_C4_a_database_read_at_a_tag_may_have_another_model(world: World) -> None:
    await two_dimensions(world)
    config = world.config(
        {"b": "memory://b", "a": "memory://a"},
        embeddings={"model": {"provider": "hash", "name": named(world, "m2"), "vector_dim": 12}},
    )
    async with HaikuRAG(config=config, sources=["b"]) as writer:
        await writer.create_tag("v1")
    tagged = {"b": {"location": "memory://b", "tag": "v1"}, "a": "memory://a"}
    embeddings = {"model": {"provider": "hash", "name": world.model, "vector_dim": 8}}
    async with HaikuRAG(config=world.config(tagged, embeddings=embeddings, search=ALLOW["search"])) as reader:
        assert {hit.source for hit in await reader.search(QUERY)} == {"a", "b"}


async def test_C4_every_embedder_is_closed_once(world: World) -> None:
    await two_dimensions(world)
    async with client(world, "a", "b") as reader:
        await reader.search(QUERY)
        await reader.search(QUERY)
        assert [embedding_calls(named(world, model))["close"] for model in ("m1", "m2")] == [0, 0]
    assert [embedding_calls(named(world, model))["close"] for model in ("m1", "m2")] == [1, 1]


async def test_C4_two_first_searches_at_once_build_each_embedder_once(world: World) -> None:
    await filled(world, "b", "ollama", "m2", 12, three=0.7)
    await filled(world, "a", "hash", "m1", 8, one=0.9)
    Ollama.configs.clear()
    async with client(world, "a", "b") as reader, anyio.create_task_group() as group:
        group.start_soon(reader.search, QUERY)
        group.start_soon(reader.search, QUERY)
    assert len(Ollama.configs) == 1


async def test_R11_an_engine_that_searches_many_is_asked_once_a_model(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from haiku.rag.testing import MemoryStorage

    asked: list[tuple[list[str], int]] = []
    search_many = MemoryStorage.search_many

    async def remembered(self: MemoryStorage, databases: Sequence[Any], query: Any) -> Any:
        asked.append((sorted(database._ref.name for database in databases), len(query.vector)))
        return await search_many(self, databases, query)

    monkeypatch.setattr(MemoryStorage, "search_many", remembered)
    await filled(world, "c", "hash", "m2", 12, five=0.7)
    await filled(world, "d", "hash", "m2", 12, six=0.6)
    await filled(world, "b", "hash", "m1", 8, three=0.7)
    await filled(world, "a", "hash", "m1", 8, one=0.9)
    async with client(world, "a", "c", "b", "d", many=True) as reader:
        found = await reader.search(QUERY)
    assert sorted(asked) == [(["a", "b"], 8), (["c", "d"], 12)]
    assert ids(found) == [("a", "one"), ("c", "five"), ("b", "three"), ("d", "six")]


@pytest.mark.parametrize(
    ("said", "told"), [("0.25", 0.25), ("7", 1.0), ("-1", 0.0), ("nan", 1.0), ("not a number", 1.0)]
)
async def test_a_fusion_is_told_how_much_of_the_query_the_model_reads(world: World, said: str, told: float) -> None:
    await filled(world, "a", "reading", said, one=0.9)
    model = {"model": {"provider": "reading", "name": world.model}}
    async with client(world, "a", search={}, embeddings=model) as reader:
        Told.readable.clear()
        for search_type in ("hybrid", "vector", "fts"):
            await reader.search(QUERY, search_type=search_type, fusion="told")
    assert Told.readable == [told, 1.0, 1.0]


async def test_C4_each_models_databases_are_ranked_by_what_their_own_model_reads(world: World) -> None:
    await filled(world, "b", "reading", "0.25", 12, three=0.7)
    await filled(world, "a", "reading", "0.5", 8, one=0.9)
    model = {"model": {"provider": "reading", "name": world.model, "vector_dim": 8}}
    async with client(world, "a", "b", embeddings=model) as reader:
        Told.readable.clear()
        assert (await reader.search(QUERY, fusion="told")).report.fusion == "rrf"
    assert Told.readable == [0.5, 0.25]


async def test_C4_without_a_configured_embedder_the_recorded_one_serves(world: World) -> None:
    await filled(world, "b", "ollama", "m2", 12, three=0.7)
    config = testing_config(
        {"memory": {"server": world.name, "databases": {"b": "memory://b"}}, **ALLOW}, StorageOnly(), Providers()
    )
    async with HaikuRAG(config=config, read_only=True) as reader:
        assert ids(await reader.search(QUERY)) == [("b", "three")]


class StorageOnly:
    """The storage of the testing plugin, and no embedder that works without configuration."""

    @hookimpl
    def haiku_rag_register_storage(self) -> Any:
        return memory_plugin.haiku_rag_register_storage()

    @hookimpl
    def haiku_rag_register_config_section(self) -> Any:
        return memory_plugin.haiku_rag_register_config_section()
