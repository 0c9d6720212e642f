"""Contract R2, the reranker in trouble: what it may say, and what is left of its answer."""

from typing import Any

import pytest
from pydantic import SecretStr

from haiku.rag.config.models import ModelConfig
from haiku.rag.errors import ConfigError, RerankError
from haiku.rag.federation.rerank_reason import reason_of

from .test_contract_ranking import Reranking, reranked
from .world import QUERY, World, ids

pytestmark = pytest.mark.anyio
FUSED = [("a", "one"), ("a", "two"), ("b", "three")]
MODEL = {"provider": "fake", "base_url": "https://user:pw@rank.example:8443/v1/", "api_key": "s3cr3t"}


@pytest.fixture
async def pool(world: World) -> World:
    await world.near("a", one=0.9, two=0.8)
    await world.near("b", three=0.7)
    return world


NO_ANSWER = {
    "equal scores": ([(0, 0.5), (1, 0.5), (2, 0.5)], "it gave different passages one and the same score"),
    "equal scores of the first ones": ([(1, 0.0), (0, 0.0)], "it gave different passages one and the same score"),
    "infinity": ([(0, float("inf")), (1, 0.4), (2, 0.3)], "it returned a score that is not a finite number"),
    "too few": ([(0, 0.5)], "it returned 1 scores, and 2 were wanted"),
    "too many": ([(0, 0.5), (1, 0.4), (2, 0.3), (2, 0.2)], "it returned an index twice"),
    "far too many": ([(number, 0.1 * number) for number in range(9)], "it returned an index that was not offered"),
    "a fraction of an index": ([(0.5, 0.5), (1, 0.4), (2, 0.3)], "TypeError"),
    "its own sentence": (RerankError("the server answered 503."), "the server answered 503"),
    "its own sentence, in lines": (RerankError("busy\n\n \x1b[31mtry\tlater"), "busy [31mtry later"),
    "no sentence": (RerankError(""), "RerankError"),
    "an address in it": (RerankError("https://user:pw@rank.example:8443/v1/rerank is down"), "***/rerank is down"),
    "a host in it": (RerankError("cannot reach RANK.example:8443 or rank.example"), "cannot reach *** or ***"),
    "a key in it": (RerankError("the key s3cr3t is not valid"), "the key *** is not valid"),
    "somebody else's sentence": (RuntimeError("http://hidden/ said no"), "RuntimeError"),
    "a late answer of its own": (TimeoutError("http://hidden/"), "TimeoutError"),
    "a bad configuration": (ConfigError("http://hidden/"), "ConfigError"),
}


@pytest.mark.parametrize("trouble", NO_ANSWER)
async def test_R2_case_6_the_fused_order_stands_and_the_report_says_why(pool: World, trouble: str) -> None:
    plugin = Reranking()
    plugin.answer, reason = NO_ANSWER[trouble]
    async with reranked(pool, plugin, "a", "b", reranking={"model": MODEL}) as client:
        found = await client.search(QUERY, limit=2)
        assert (ids(found), found.report.rerank) == (FUSED[:2], f"failed ({reason})")
        assert {entry.rerank_score for entry in found.report.results} == {None}
    async with reranked(pool, plugin, "a", "b", reranking={"model": MODEL, "required": True}) as client:
        with pytest.raises(RerankError) as caught:
            await client.search(QUERY, limit=2)
    assert str(caught.value) == f"reranking failed ({reason}), and reranking.required is set."
    assert "hidden" not in repr(caught.value.__cause__) + repr(caught.value.__context__)


async def test_R2_case_6_a_sentence_that_never_ends_is_cut(pool: World) -> None:
    plugin = Reranking()
    plugin.answer = RerankError("no " * 500)
    async with reranked(pool, plugin, "a", "b") as client:
        told = (await client.search(QUERY)).report.rerank
    assert len(told) <= len("failed ()") + 200
    assert told.endswith("…)")


async def test_R2_equal_scores_of_one_and_the_same_passage_are_no_failure(world: World) -> None:
    for name in ("a", "b"):
        await world.text(name, one="the same words")
    async with reranked(world, Reranking({"one": 0.5}), "a", "b") as client:
        assert (await client.search(QUERY)).report.rerank == "ok"


async def test_R2_equal_scores_of_those_that_a_reranker_chose_are_no_failure(pool: World) -> None:
    plugin = Reranking()
    plugin.answer = [(2, 1.0), (0, 1.0)]
    async with reranked(pool, plugin, "a", "b") as client:
        found = await client.search(QUERY, limit=2)
    assert (ids(found), found.report.rerank) == ([("a", "one"), ("b", "three")], "ok")


async def test_R2_one_passage_alone_has_one_score(world: World) -> None:
    await world.near("a", one=0.9)
    async with reranked(world, Reranking(), "a") as client:
        assert (await client.search(QUERY)).report.rerank == "ok"


@pytest.mark.parametrize(
    ("base_url", "text", "told"),
    [
        ("http://ranker/", "http://ranker/rerank: the ranker is full", "***/rerank: the ranker is full"),
        ("ranker:8080", "ranker:8080 is full", "*** is full"),
        ("http://[::1", "http://[::1 is full", "*** is full"),
        ("http://[::1]:80", "[::1]:80 is full", "*** is full"),
        (None, "full", "full"),
        (" ", "full ", "full"),
    ],
)
def test_a_reason_never_holds_where_the_service_is(base_url: str | None, text: str, told: str) -> None:
    model = ModelConfig(provider="x", base_url=base_url, api_key=SecretStr(" "))
    assert reason_of(RerankError(text), model) == told


async def test_R6_explain_gives_every_score_and_rank_before_and_after_each_stage(world: World) -> None:
    await world.text("a", one="harbour pilots at dawn", two="pilots")
    await world.text("b", three="harbour")
    plugin = Reranking({"one": 0.2, "two": 0.4, "three": 0.9})
    async with reranked(world, plugin, "a", "b") as client:
        found = await client.search(QUERY, fusion="cosine", weights={"b": 0.5}, boosts={"a": 0.1})
    by_chunk = {entry.chunk_id: entry for entry in found.report.results}
    assert [(entry.chunk_id, entry.rank) for entry in found.report.results] == [("two", 1), ("three", 2), ("one", 3)]
    one, two, three = by_chunk["one"], by_chunk["two"], by_chunk["three"]
    assert (one.vector_rank, one.keyword_rank, one.rank_in_database) == (1, 1, 1)
    assert (two.vector_rank, two.keyword_rank, two.rank_in_database) == (2, 2, 2)
    assert one.similarity == pytest.approx(1.0, abs=1e-6)
    assert one.keyword_score is not None
    assert one.fused_score == one.similarity
    assert (one.fused_rank, one.rerank_rank, three.rerank_rank) == (1, 3, 1)
    assert [entry.rerank_score for entry in (one, two, three)] == [0.2, 0.4, 0.9]
    assert [entry.weighted_score for entry in (one, two, three)] == pytest.approx([0.2, 0.4, 0.45])
    assert [entry.boost for entry in (one, two, three)] == [0.1, 0.1, 0.0]
    assert [entry.score for entry in (one, two, three)] == pytest.approx([0.3, 0.5, 0.45])


async def test_R6_explain_of_a_leg_that_did_not_find_a_passage_holds_nothing(world: World) -> None:
    await world.text("a", one="harbour", two="granite")
    async with world.client("a") as client:
        found = await client.search("harbour")
        assert [(entry.vector_rank, entry.keyword_rank) for entry in found.report.results] == [(1, 1), (2, None)]
        (only,) = (await client.search("harbour", search_type="fts")).report.results
    assert (only.similarity, only.vector_rank, only.keyword_rank) == (None, None, 1)
    assert only.keyword_share is not None
    assert 0 < only.keyword_share <= 1


async def test_R6_a_report_says_the_same_as_json(pool: World) -> None:
    async with pool.client("a", "b") as client:
        report: dict[str, Any] = (await client.search(QUERY)).report.model_dump(mode="json")
    assert set(report["results"][0]) == {
        *("chunk_id", "source", "similarity", "vector_rank", "keyword_score", "keyword_share", "keyword_rank"),
        *("rank_in_database", "fused_score", "fused_rank", "rerank_score", "rerank_rank"),
        *("weighted_score", "boost", "score", "rank"),
    }
