"""Contract R: ranking."""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import numpy as np
import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.contracts import CANDIDATE_SCHEMA, RerankCandidate
from haiku.rag.errors import EmbeddingError, PluginError, RerankError
from haiku.rag.plugins import FusionRecord, RerankerRecord, hookimpl
from haiku.rag.testing import MemoryStorage

from .world import QUERY, World, ids

pytestmark = pytest.mark.anyio


class Reranking:
    """A plugin with the reranker `fake`, which scores by a table of chunk ids and remembers what it was asked."""

    def __init__(self, scores: Mapping[str, float] | None = None, *, scale: Any = (0.0, 1.0)) -> None:
        self.scores = dict(scores or {})
        self.scale = scale
        self.built = self.closed = 0
        self.asked: list[list[str]] = []
        self.limits: list[int] = []
        self.fused: list[float | None] = []
        self.answer: Any = None
        self.gate: anyio.Event | None = None
        CURRENT[:] = [self]

    @hookimpl
    def haiku_rag_register_reranker(self) -> list[RerankerRecord]:
        return [RerankerRecord(name="fake", summary="s", factory=f"{__name__}:build_reranker")]

    async def rerank(self, query: str, candidates: Sequence[RerankCandidate], limit: int) -> Any:
        self.asked.append([f"{candidate.source}/{candidate.chunk_id}" for candidate in candidates])
        self.limits.append(limit)
        self.fused = [candidate.score for candidate in candidates]
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer
        pairs = [(index, self.scores.get(candidate.chunk_id, 0.0)) for index, candidate in enumerate(candidates)]
        return sorted(pairs, key=lambda pair: -pair[1])[:limit]

    async def close(self) -> None:
        self.closed += 1


CURRENT: list[Reranking] = []


def build_reranker(config: object) -> Reranking:
    """The factory of `fake`."""
    CURRENT[0].built += 1
    return CURRENT[0]


def reranked(world: World, plugin: Reranking, *databases: str, **sections: Any) -> HaikuRAG:
    reranking = {"model": {"provider": "fake"}, **sections.pop("reranking", {})}
    return HaikuRAG(config=world.config(databases, plugin, reranking=reranking, **sections), read_only=True)


async def test_R1_candidates_are_fetched_concurrently_and_ranked_when_all_are_there(world: World) -> None:
    await world.near("a", one=0.5)
    await world.near("b", two=0.9)
    gates = [world.hold(name, "search") for name in ("a", "b")]
    found: list[Any] = []

    async def ask() -> None:
        found.append(ids(await client.search(QUERY)))

    async with world.client("a", "b") as client, anyio.create_task_group() as group:
        group.start_soon(ask)
        with anyio.fail_after(10):
            await world.entered("a", "search").wait()
            await world.entered("b", "search").wait()
        gates[0].set()
        await anyio.wait_all_tasks_blocked()
        assert found == []
        assert world.calls("a", "chunks_by_id") == 0
        gates[1].set()
    assert found == [[("b", "two"), ("a", "one")]]


async def test_R2_a_reranker_scores_the_pooled_candidates_once_whatever_database_they_came_from(world: World) -> None:
    await world.near("a", one=0.9, two=0.8)
    await world.near("b", three=0.7)
    plugin = Reranking({"three": 0.9, "two": 0.5, "one": 0.1})
    async with reranked(world, plugin, "a", "b") as client:
        found = await client.search(QUERY)
    assert plugin.asked == [["a/one", "a/two", "b/three"]]
    assert plugin.fused == pytest.approx([0.9, 0.8, 0.7], abs=1e-6)
    assert [(hit.source, hit.chunk_id, hit.score) for hit in found] == [
        ("b", "three", 0.9),
        ("a", "two", 0.5),
        ("a", "one", 0.1),
    ]
    assert found.report.rerank == "ok"


async def test_R2_a_reranker_is_built_lazily_once_for_the_set_and_closed_once_by_the_client_that_built_it(
    world: World,
) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    plugin = Reranking()
    async with reranked(world, plugin, "a", "b") as client:
        await client.list_documents()
        await client.search(QUERY, sources=[])
        assert plugin.built == 0
        await client.search(QUERY)
        reader = await client.reader_for("a")
        await reader.search(QUERY)
        await reader.aclose()
        assert (plugin.built, plugin.closed) == (1, 0)
    assert (plugin.built, plugin.closed) == (1, 1)


@pytest.mark.parametrize(
    ("limit", "factor", "depth"), [(3, 10, 30), (2, 4, 8), (1, 1, 1), (50, None, 500), (2, None, 20)]
)
async def test_R2_the_over_fetch_is_limit_times_pool_factor_for_every_database_of_the_set(
    world: World, limit: int, factor: int | None, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    search = {} if factor is None else {"rerank_pool_factor": factor}
    depths = remember_depths(monkeypatch)
    async with reranked(world, Reranking(), "a", "b", search=search) as client:
        await client.search(QUERY, limit=limit)
    assert depths == [depth, depth]


def remember_depths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The depth of every query that a database in memory is asked from now on."""
    from haiku.rag.testing.memory import MemoryDatabase

    depths: list[int] = []
    search = MemoryDatabase.search

    async def remembered(self: MemoryDatabase, query: Any) -> Any:
        depths.append(query.depth)
        return await search(self, query)

    monkeypatch.setattr(MemoryDatabase, "search", remembered)
    return depths


async def test_R2_the_right_passage_at_pool_rank_eleven_comes_first(world: World) -> None:
    await world.near("a", **{f"p{number:02}": 0.9 - number / 100 for number in range(12)})
    async with reranked(world, Reranking({"p10": 1.0}), "a") as client:
        assert (await client.search(QUERY, limit=3))[0].chunk_id == "p10"


TROUBLE = {
    "it refuses": ConnectionRefusedError("http://hidden:9"),
    "it answers 503": RuntimeError('{"error": "busy"}'),
    "it gives too few scores": [(0, 0.5)],
    "it gives an index twice": [(0, 0.5), (0, 0.4), (1, 0.3)],
    "it gives an index that was not offered": [(0, 0.5), (1, 0.4), (7, 0.3)],
    "it gives a negative index": [(0, 0.5), (1, 0.4), (-1, 0.3)],
    "it gives a score that is no number": [(0, float("nan")), (1, 0.4), (2, 0.3)],
    "it gives no pairs": [1, 2, 3],
    "it gives nothing": [],
}


@pytest.mark.parametrize("trouble", TROUBLE)
async def test_R2_a_reranker_in_trouble_leaves_the_fused_order_and_a_report_or_an_error_when_required(
    world: World, trouble: str
) -> None:
    await world.near("a", one=0.9, two=0.8)
    await world.near("b", three=0.7)
    plugin = Reranking()
    plugin.answer = TROUBLE[trouble]
    async with reranked(world, plugin, "a", "b") as client:
        found = await client.search(QUERY)
        assert ids(found) == [("a", "one"), ("a", "two"), ("b", "three")]
        assert [hit.score for hit in found] == pytest.approx([0.9, 0.8, 0.7], abs=1e-6)
        assert found.report.rerank.startswith("failed (")
        assert "hidden" not in found.report.rerank
    async with reranked(world, plugin, "a", "b", reranking={"required": True}) as client:
        with pytest.raises(RerankError, match="reranking.required is set") as caught:
            await client.search(QUERY)
        assert "hidden" not in str(caught.value)


async def test_R2_a_reranker_that_hangs_is_bounded(world: World) -> None:
    await world.near("a", one=0.9)
    plugin = Reranking()
    plugin.gate = anyio.Event()
    async with reranked(world, plugin, "a", reranking={"timeout_s": 0.05}) as client:
        with anyio.fail_after(10):
            found = await client.search(QUERY)
    assert ids(found) == [("a", "one")]
    assert found.report.rerank == "failed (no answer within 0.05 s)"


async def test_R2_equal_scores_of_a_reranker_fall_to_the_rank_within_the_database_then_to_configured_order(
    world: World,
) -> None:
    await world.near("a", one=0.2, two=0.1)
    await world.near("b", three=0.9, four=0.05)
    async with reranked(world, Reranking({"four": 1.0}), "a", "b") as client:
        found = ids(await client.search(QUERY))
    assert found == [("b", "four"), ("a", "one"), ("b", "three"), ("a", "two")]


async def test_R2_an_empty_pool_asks_no_reranker(world: World) -> None:
    world.empty("a", "b")
    plugin = Reranking()
    async with reranked(world, plugin, "a", "b") as client:
        found = await client.search(QUERY)
    assert (found, plugin.asked) == ([], [])


async def test_R2_a_chunk_that_is_gone_is_not_offered_to_the_reranker(world: World) -> None:
    await world.near("a", one=0.9, two=0.8)
    gate = world.hold("a", "chunks_by_id")
    plugin = Reranking({"two": 0.5})
    async with reranked(world, plugin, "a") as client, anyio.create_task_group() as group:
        group.start_soon(client.search, QUERY)
        await world.entered("a", "chunks_by_id").wait()
        del world.server.states["memory://a"].documents["doc-one"]
        gate.set()
    assert plugin.asked == [["a/two"]]


@pytest.mark.parametrize("search_type", ["hybrid", "vector"])
async def test_R3_the_default_of_several_orders_by_cosine_similarity(world: World, search_type: Any) -> None:
    await world.near("a", one=0.9, two=0.3)
    await world.near("b", three=0.6, four=-0.2)
    async with world.client("a", "b") as client:
        found = await client.search(QUERY, search_type=search_type)
    assert ids(found) == [("a", "one"), ("b", "three"), ("a", "two"), ("b", "four")]
    assert [hit.score for hit in found] == pytest.approx([0.9, 0.6, 0.3, -0.2], abs=1e-6)
    assert found.report.fusion == "cosine"


async def test_R3_ties_fall_to_rank_then_to_configured_order(world: World) -> None:
    same = {"x": "the same words", "y": "the same words"}
    for name in ("a", "b"):
        await world.text(name, **same)
    expected = [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y")]
    async with world.client("a", "b") as client:
        assert ids(await client.search("the same words")) == expected
        assert ids(await client.search("the same words", sources=["b", "a"])) == expected
    async with HaikuRAG(config=world.config(["a", "b"]), sources=["b", "a"], read_only=True) as client:
        assert ids(await client.search("the same words")) == expected


async def test_R3_a_client_over_a_narrowed_scope_keeps_the_configured_order_of_ties(world: World) -> None:
    for name in ("a", "b"):
        await world.text(name, x="the same words")
    from haiku.rag.client import DatabaseScope

    config = world.config(["a", "b"])
    scope = DatabaseScope.resolve(config).select(["b", "a"])
    async with HaikuRAG.over(scope, config, read_only=True) as client:
        assert client.source_names == ("b", "a")
        assert ids(await client.search("the same words")) == [("a", "x"), ("b", "x")]


async def test_R3_the_order_of_declaration_decides_nothing_but_exact_ties(world: World) -> None:
    await world.near("a", one=0.9, two=0.3)
    await world.near("b", three=0.6, four=0.1)
    await world.near("c", five=0.5)
    orders = [("a", "b", "c"), ("c", "b", "a"), ("b", "c", "a")]
    found = []
    for names in orders:
        async with world.client(*names) as client:
            found.append([(hit.source, hit.chunk_id, hit.score) for hit in await client.search(QUERY)])
    assert found[0] == found[1] == found[2]


async def test_R4_full_text_only_orders_by_how_much_of_the_attainable_score_a_passage_has(world: World) -> None:
    await world.text("a", one="pilots pilots pilots", two="pilots and many other words that nobody looks for at all")
    await world.text("b", three="pilots and boats", filler="nothing of the kind")
    async with world.client("a", "b") as client:
        found = await client.search("pilots", search_type="fts")
    keyword = {entry.chunk_id: entry.keyword_share for entry in found.report.results}
    assert {hit.chunk_id: hit.score for hit in found} == keyword
    assert sorted(keyword.values(), reverse=True) == list(keyword.values())  # type: ignore[type-var]  # none is None
    assert set(keyword) == {"one", "two", "three"}
    assert world.embedded["query"] == 0


async def test_R5_an_image_query_is_vector_only_and_skips_the_reranker(world: World) -> None:
    world.use_model(f"image-{world.name}")
    await world.text("a", one="harbour pilots", two="granite")
    await world.text("b", three="pilots")
    plugin = Reranking()
    async with reranked(world, plugin, "a", "b") as client:
        found = await client.search(b"harbour pilots")
        assert ids(found)[:2] == [("a", "one"), ("b", "three")]
        assert {entry.keyword_score for entry in found.report.results} == {None}
        with pytest.raises(ValueError, match="an image has no words"):
            await client.search(b"harbour pilots", search_type="fts")
    assert (plugin.built, plugin.asked, found.report.rerank) == (0, [], "off")


async def test_R5_an_image_query_with_a_text_only_embedder_is_an_error_and_opens_nothing(world: World) -> None:
    world.empty("a", "b")
    async with world.client("a", "b") as client:
        with pytest.raises(ValueError, match="the embedder 'hash' reads text only, and the query is an image"):
            await client.search(b"\x89PNG")
    assert world.total("open") == 0


@pytest.mark.parametrize("search_type", ["hybrid", "vector", "fts"])
@pytest.mark.parametrize("fusion", [None, "cosine", "rrf"])
@pytest.mark.parametrize("more", [{}, {"weights": {"a": 0.5}}, {"boosts": {"b": 0.3}}, {"min_score": 0.01}])
async def test_R6_scores_are_those_that_ordered_the_list_and_never_increase(
    world: World, search_type: Any, fusion: str | None, more: dict[str, Any]
) -> None:
    await world.text("a", one="harbour pilots", two="dawn", three="pilots at dawn at the harbour")
    await world.text("b", four="harbour", five="at", six="granite")
    async with world.client("a", "b") as client:
        found = await client.search(QUERY, limit=10, search_type=search_type, fusion=fusion, **more)
    scores = [hit.score for hit in found]
    assert len(found) >= 4
    assert scores == sorted(scores, reverse=True)
    assert [entry.score for entry in found.report.results] == scores
    assert [entry.rank for entry in found.report.results] == list(range(1, len(found) + 1))
    best = sorted(found.report.results, key=lambda entry: entry.fused_rank)
    assert [entry.fused_score for entry in best] == sorted((entry.fused_score for entry in best), reverse=True)


async def test_R7_results_are_not_spread_across_databases(world: World) -> None:
    await world.near("strong", **{f"s{number}": 0.9 - number / 100 for number in range(6)})
    await world.near("poor", **{f"p{number}": 0.1 for number in range(6)})
    async with world.client("poor", "strong") as client:
        found = await client.search(QUERY, limit=5)
    assert {hit.source for hit in found} == {"strong"}
    assert [(entry.name, entry.status) for entry in found.report.databases] == [("poor", "ok"), ("strong", "ok")]


@pytest.mark.parametrize("search_type", ["hybrid", "vector", "fts"])
@pytest.mark.parametrize("more", [{}, {"fusion": "cosine"}, {"fusion": "rrf"}, {"weights": {"a": 2.0}}, {"limit": 1}])
async def test_R8_a_query_that_selects_one_gives_just_what_that_database_alone_gives(
    world: World, search_type: Any, more: dict[str, Any]
) -> None:
    await world.text("a", one="harbour pilots", two="dawn dawn", three="pilots at dawn at the harbour", four="granite")
    await world.text("b", five="harbour pilots at dawn")
    async with world.client("a", "b") as several, world.client("a") as alone:
        expected = await alone.search(QUERY, search_type=search_type, **more)
        lent = await (await several.reader_for("a")).search(QUERY, search_type=search_type, **more)
        chosen = await several.search(QUERY, search_type=search_type, sources=["a"], **more)
    assert list(chosen) == list(lent) == list(expected)
    assert [(hit.chunk_id, hit.score) for hit in chosen] == [(hit.chunk_id, hit.score) for hit in expected]
    assert chosen.report.results == expected.report.results
    assert len(expected) >= 1


async def test_R8_hybrid_over_one_database_merges_by_reciprocal_rank_unless_a_fusion_is_configured(
    world: World,
) -> None:
    await world.text("a", one="harbour pilots", two="granite")
    async with world.client("a") as client:
        assert (await client.search(QUERY)).report.fusion == "rrf"
        assert (await client.search(QUERY))[0].score == pytest.approx(2 / 61)
        assert (await client.search(QUERY, search_type="vector")).report.fusion == "cosine"
    for names in (("a",), ("a", "b")):
        world.empty("b")
        async with world.client(*names, search={"fusion": "cosine"}) as client:
            assert (await client.search(QUERY)).report.fusion == "cosine"
            assert (await client.search(QUERY, fusion="rrf")).report.fusion == "rrf"


async def test_R9_enrichment_runs_on_the_survivors_only_through_the_database_each_came_from(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from haiku.rag.testing.memory import MemoryDatabase

    asked: list[list[str]] = []
    read = MemoryDatabase.chunks_by_id

    async def remembered(self: MemoryDatabase, chunk_ids: Sequence[str]) -> Any:
        asked.append(list(chunk_ids))
        return await read(self, chunk_ids)

    monkeypatch.setattr(MemoryDatabase, "chunks_by_id", remembered)
    await world.near("a", one=0.9, two=0.2, three=0.1)
    await world.near("b", four=0.8, five=0.3)
    await world.near("c", six=0.0)
    async with world.client("a", "b", "c") as client:
        assert len(await client.search(QUERY, limit=2)) == 2
    assert sorted(asked) == [["four"], ["one"]]
    assert (world.calls("a", "chunks_by_id"), world.calls("c", "chunks_by_id")) == (1, 0)


async def test_R9_enrichment_asks_the_databases_concurrently(world: World) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    gates = [world.hold(name, "chunks_by_id") for name in ("a", "b")]
    async with world.client("a", "b") as client, anyio.create_task_group() as group:
        group.start_soon(client.search, QUERY)
        with anyio.fail_after(10):
            await world.entered("a", "chunks_by_id").wait()
            await world.entered("b", "chunks_by_id").wait()
        for gate in gates:
            gate.set()


async def test_R9_pictures_are_read_for_the_survivors_that_have_some(world: World) -> None:
    await world.pictured("a", {"pic": b"PNG"}, one=0.9, low=0.1)
    await world.near("b", two=0.8)
    async with world.client("a", "b") as client:
        plain = await client.search(QUERY, limit=2)
        assert [hit.image_data for hit in plain] == [None, None]
        assert world.calls("a", "picture") == 0
        found = await client.search(QUERY, limit=2, include_images=True)
        assert [hit.image_data for hit in found] == [{"pic": "UE5H"}, None]
        assert (world.calls("a", "picture"), world.calls("b", "picture")) == (2, 0)


class Fusing:
    """A plugin with the fusion `odd`, which gives the scores that a test wants, by chunk id."""

    table: Mapping[str, float] = {}
    bounds: Any = None

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    @hookimpl
    def haiku_rag_register_fusion(self) -> list[FusionRecord]:
        return [FusionRecord(name="odd", summary="s", factory=f"{__name__}:Fusing")]

    def scale(self, context: Any) -> Any:
        return self.bounds

    def fuse(self, pool: Any, context: Any) -> Any:
        assert pool.column_names == [*CANDIDATE_SCHEMA.names, "source"]
        return np.array([self.table[chunk] for chunk in pool["chunk_id"].to_pylist()])


async def fused(world: World, table: Mapping[str, float], bounds: Any = None, **more: Any) -> list[tuple[str, float]]:
    Fusing.table, Fusing.bounds = table, bounds
    async with HaikuRAG(config=world.config(["a", "b"], Fusing()), read_only=True) as client:
        found = await client.search(QUERY, fusion="odd", **more)
    return [(hit.chunk_id, hit.score) for hit in found]


async def test_R10_a_fusion_is_a_plugin_chosen_per_call_or_in_the_configuration(world: World) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    assert await fused(world, {"one": 1.0, "two": 2.0}) == [("two", 2.0), ("one", 1.0)]
    config = world.config(["a", "b"], Fusing(), search={"fusion": "odd"})
    async with HaikuRAG(config=config, read_only=True) as client:
        assert ids(await client.search(QUERY)) == [("b", "two"), ("a", "one")]
        assert ids(await client.search(QUERY, fusion="cosine")) == [("a", "one"), ("b", "two")]
        with pytest.raises(PluginError, match="no fusion 'cosin'. Known: .*Did you mean 'cosine'?"):
            await client.search(QUERY, fusion="cosin")


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0), (-1.0, 1.0), (0.0, 2 / 61)])
async def test_R10_the_contract_of_weights_holds_for_every_scale(world: World, bounds: Any) -> None:
    await world.near("a", poor=0.2)
    await world.near("b", good=0.9)
    low, high = bounds or (-3.0, 3.0)
    table = {"poor": low + 0.2 * (high - low), "good": low + 0.9 * (high - low)}
    plain = await fused(world, table, bounds)
    assert [chunk for chunk, _ in plain] == ["good", "poor"]
    assert await fused(world, table, bounds, weights={"a": 1.0, "b": 1.0}) == plain
    assert [chunk for chunk, _ in await fused(world, table, bounds, weights={"a": 1.1})] == ["good", "poor"]
    assert [chunk for chunk, _ in await fused(world, table, bounds, weights={"b": 0})] == ["poor"]
    assert [chunk for chunk, _ in await fused(world, table, bounds, weights={"b": 0.01})] == ["poor", "good"]


async def test_R10_scores_that_are_no_numbers_are_left_out(world: World) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    nan = float("nan")
    assert await fused(world, {"one": nan, "two": 0.5}) == [("two", 0.5)]
    assert await fused(world, {"one": nan, "two": nan}, weights={"a": 2}, boosts={"b": 1}, min_score=0.1) == []


async def test_R10_weights_threshold_and_boosts_come_in_this_order(world: World) -> None:
    await world.near("a", one=0.5)
    await world.near("b", two=0.4)
    table = {"one": 0.5, "two": 0.4}
    scale = (0.0, 1.0)
    assert await fused(world, table, scale, weights={"a": 0.5}, min_score=0.3) == [("two", 0.4)]
    assert await fused(world, table, scale, boosts={"b": 1.0}, min_score=0.45) == [("one", 0.5)]
    assert await fused(world, table, scale, boosts={"b": 100}) == [("two", 100.4), ("one", 0.5)]


async def test_R10_the_configurations_values_serve_where_a_call_gives_none(world: World) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    search = {"weights": {"a": 0}, "boosts": {"b": 1.0}, "min_score": 0.5}
    async with world.client("a", "b", search=search) as client:
        found = await client.search(QUERY)
        assert [(hit.chunk_id, round(hit.score, 3)) for hit in found] == [("two", 1.8)]
        assert ids(await client.search(QUERY, weights={}, boosts={}, min_score=0.85)) == [("a", "one")]
        assert (await client.search(QUERY, weights={})).report.below_min_score == 0
        assert (await client.search(QUERY, min_score=0.99)).report.below_min_score == 1


async def test_R10_at_most_so_many_hits_of_one_database_when_that_is_set(world: World) -> None:
    await world.near("a", one=0.9, two=0.8, three=0.7)
    await world.near("b", four=0.1)
    async with world.client("a", "b", search={"max_per_source": 2}) as client:
        assert ids(await client.search(QUERY)) == [("a", "one"), ("a", "two"), ("b", "four")]
    async with world.client("a", "b") as client:
        assert len(await client.search(QUERY)) == 4


async def test_R10_weights_and_boosts_come_after_a_reranker_too(world: World) -> None:
    await world.near("a", one=0.9, two=0.8)
    await world.near("b", three=0.1)
    plugin = Reranking({"one": 0.9, "two": 0.8, "three": 0.1})
    async with reranked(world, plugin, "a", "b") as client:
        assert ids(await client.search(QUERY, limit=1)) == [("a", "one")]
        assert ids(await client.search(QUERY, limit=1, boosts={"b": 100})) == [("b", "three")]
        assert ids(await client.search(QUERY, limit=1, weights={"a": 0})) == [("b", "three")]
    assert plugin.limits == [1, 3, 3]


async def test_R10_scores_of_a_reranker_without_bound_are_weighted_too(world: World) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    async with reranked(world, Reranking({"one": 4.0, "two": 3.0}, scale=None), "a", "b") as client:
        assert [hit.score for hit in await client.search(QUERY)] == [4.0, 3.0]
        assert ids(await client.search(QUERY, weights={"a": 0.5})) == [("b", "two"), ("a", "one")]


def remember_many(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many databases each `search_many` is asked for from now on."""
    asked: list[int] = []
    search_many = MemoryStorage.search_many

    async def remembered(self: MemoryStorage, databases: Sequence[Any], query: Any) -> Any:
        asked.append(len(databases))
        return await search_many(self, databases, query)

    monkeypatch.setattr(MemoryStorage, "search_many", remembered)
    return asked


def answer_many(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    """From now on `search_many` raises an error, gives a list, or for None never answers."""

    async def answered(self: MemoryStorage, databases: Sequence[Any], query: Any) -> Any:
        if answer is None:
            await anyio.sleep_forever()
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(MemoryStorage, "search_many", answered)


async def test_R11_an_engine_that_searches_many_is_asked_once_for_all_of_its_databases(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    await world.near("c", three=0.7)
    config = world.config(["a", "b", "c"], many=True)
    asked = remember_many(monkeypatch)
    async with HaikuRAG(config=config, read_only=True) as client:
        assert ids(await client.search(QUERY)) == [("a", "one"), ("b", "two"), ("c", "three")]
        assert asked == [3]
        assert ids(await client.search(QUERY, sources=["b"])) == [("b", "two")]
        assert asked == [3]
    assert (world.total("search_many"), world.total("search")) == (3, 1)


async def test_R11_others_are_asked_one_call_a_database(world: World) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    async with world.client("a", "b") as client:
        await client.search(QUERY)
    assert (world.total("search_many"), world.calls("a", "search"), world.calls("b", "search")) == (0, 1, 1)


async def test_R11_one_of_them_may_fail_alone(world: World) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    world.server.fail("memory://a", OSError("x"), "search_many")
    async with HaikuRAG(config=world.config(["a", "b"], many=True), read_only=True) as client:
        found = await client.search(QUERY, on_unavailable="skip")
    assert (ids(found), [entry.name for entry in found.report.left_out]) == ([("b", "two")], ["a"])


@pytest.mark.parametrize(
    ("answer", "status"), [(OSError("x"), "unavailable"), (None, "timeout"), (FileNotFoundError(), "missing")]
)
async def test_R11_a_common_call_that_fails_is_each_databases_failure_under_its_own_name(
    world: World, answer: Exception | None, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    await world.near("c", three=0.1)
    answer_many(monkeypatch, answer)
    placed = {"memory": {"server": world.name, "databases": {"c": "memory://c"}}, "search": {"timeout_s": 0.05}}
    async with HaikuRAG(config=world.config(["a", "b"], many=True, **placed), read_only=True) as client:
        with anyio.fail_after(10):
            found = await client.search(QUERY, on_unavailable="skip")
        assert ids(found) == [("c", "three")]
        assert found.report.left_out[0].status == status
        assert [entry.name for entry in found.report.left_out] == ["a", "b"]
        assert all(f"'{entry.name}'" in str(entry.reason) for entry in found.report.left_out)


async def test_R11_an_engine_that_answers_for_too_few_is_at_fault(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.near("a", one=0.9)
    await world.near("b", two=0.8)
    answer_many(monkeypatch, [])
    async with HaikuRAG(config=world.config(["a", "b"], many=True), read_only=True) as client:
        with pytest.raises(PluginError, match="storage 'memory-many' answered 0 of 2 databases"):
            await client.search(QUERY, on_unavailable="skip")


async def test_R12_the_pool_that_a_reranker_sees_is_capped_best_first_when_that_is_set(world: World) -> None:
    await world.near("a", one=0.9, two=0.5)
    await world.near("b", three=0.7, four=0.1)
    plugin = Reranking({"two": 1.0, "three": 0.5, "four": 1.0})
    async with reranked(world, plugin, "a", "b", search={"rerank_max_candidates": 2}) as client:
        assert ids(await client.search(QUERY)) == [("b", "three"), ("a", "one")]
    async with reranked(world, plugin, "a", "b") as client:
        assert len(await client.search(QUERY)) == 4
    assert plugin.asked == [["a/one", "b/three"], ["a/one", "b/three", "a/two", "b/four"]]


@pytest.mark.parametrize("vector", [np.zeros(3), np.full(64, np.nan)])
async def test_a_query_vector_that_cannot_be_used_is_an_error(
    world: World, vector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from haiku.rag.testing import HashEmbedder

    async def broken(self: HashEmbedder, query: str) -> Any:
        return vector

    await world.near("a", one=0.9)
    monkeypatch.setattr(HashEmbedder, "embed_query", broken)
    async with world.client("a") as client:
        with pytest.raises(EmbeddingError, match="not 64 finite numbers"):
            await client.search(QUERY)


@pytest.mark.parametrize("query", ["", "   \t", "\0\0", b""])
async def test_a_blank_query_is_an_error_and_opens_nothing(world: World, query: Any) -> None:
    async with world.client("a", "b") as client:
        with pytest.raises(ValueError, match="the query is empty"):
            await client.search(query)
    assert world.total("open") == 0
