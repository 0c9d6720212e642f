"""Contract R13: a passage that several databases hold is one hit, where that is wanted."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.contracts import DocumentWrite
from haiku.rag.models import Chunk

from .test_contract_ranking import Reranking, reranked
from .world import QUERY, World, ids

pytestmark = pytest.mark.anyio
SAME = "Pilots wait in the harbour at dawn."


async def passages(world: World, database: str, *rows: tuple[str, float, Mapping[str, Any]]) -> None:
    """Passages in one document each, with text, cosine to the query, and more of the chunk."""
    vectors = await world.vectors_at([cosine for _, cosine, _ in rows])
    writes = [
        DocumentWrite(
            id=f"doc-{database}-{number}",
            uri="file:///README.md" if number == 0 else f"file:///{number}.md",
            title="Read me",
            chunks=[Chunk(**{"id": f"{database}{number}", "content": text, **more})],
            vectors=vectors[number : number + 1],
        )
        for number, (text, _, more) in enumerate(rows)
    ]
    await world.store(database, writes)


def found_in(results: Sequence[Any]) -> list[tuple[str, list[str]]]:
    """Each hit's chunk, and the chunks that it stands for."""
    return [(hit.chunk_id, [copy.chunk_id for copy in hit.also_in]) for hit in results]


async def test_R13_case_7_a_passage_in_two_databases_is_one_hit_with_the_best_score_and_names_both(
    world: World,
) -> None:
    await passages(world, "wiki", (SAME, 0.8, {}), ("Wiki only.", 0.5, {}))
    await passages(world, "archive", (SAME, 0.9, {}), ("Archive only.", 0.4, {}))
    async with world.client("wiki", "archive", search={"dedupe": True, "fusion": "cosine"}) as client:
        found = await client.search(QUERY, search_type="vector")
    assert ids(found) == [("archive", "archive0"), ("wiki", "wiki1"), ("archive", "archive1")]
    assert found[0].score == pytest.approx(0.9, abs=1e-6)
    assert [copy.model_dump() for copy in found[0].also_in] == [
        {
            "source": "wiki",
            "chunk_id": "wiki0",
            "document_id": "doc-wiki-0",
            "document_uri": "file:///README.md",
            "document_title": "Read me",
        }
    ]
    assert found.report.duplicates == 1
    assert [entry.rank for entry in found.report.results] == [1, 2, 3]


async def test_R13_case_7_the_slot_of_a_duplicate_is_filled_again(world: World) -> None:
    for number, name in enumerate(("a", "b", "c")):
        await passages(world, name, (SAME, 0.9, {}), (f"Own words of {name}.", 0.5 - number / 10, {}))
    async with world.client("a", "b", "c") as client:
        assert found_in(await client.search(QUERY, limit=3)) == [("a0", []), ("b0", []), ("c0", [])]
        found = await client.search(QUERY, limit=3, dedupe=True)
    assert found_in(found) == [("a0", ["b0", "c0"]), ("a1", []), ("b1", [])]
    assert (found.report.duplicates, len(found.report.results)) == (2, 3)


async def test_R13_case_7_different_passages_of_one_name_never_merge(world: World) -> None:
    await passages(world, "a", ("How to install the pump.", 0.9, {}))
    await passages(world, "b", ("How to install the lamp.", 0.8, {}))
    async with world.client("a", "b") as client:
        found = await client.search(QUERY, dedupe=True)
    assert [hit.document_uri for hit in found] == ["file:///README.md"] * 2
    assert found_in(found) == [("a0", []), ("b0", [])]


async def test_R13_case_7_equal_chunk_ids_resolve_to_the_right_text(world: World) -> None:
    await passages(world, "a", (SAME, 0.9, {"id": "x"}), ("A's.", 0.5, {"id": "y"}))
    await passages(world, "b", (SAME, 0.8, {"id": "y"}), ("B's.", 0.4, {"id": "x"}))
    async with world.client("a", "b") as client:
        found = await client.search(QUERY, dedupe=True)
    assert [(hit.source, hit.chunk_id, hit.content) for hit in found] == [
        ("a", "x", SAME),
        ("a", "y", "A's."),
        ("b", "x", "B's."),
    ]
    assert [(copy.source, copy.chunk_id) for copy in found[0].also_in] == [("b", "y")]


ALIKE = {
    "white space": (SAME, "Pilots  wait\n\tin the harbour at dawn. ", {}, {}),
    "composition": ("Die Lotsen fa\u0308hrt", "Die Lotsen f\u00e4hrt", {}, {}),
    "headings": (SAME, SAME, {"headings": ["Sea", "Pilots"]}, {"headings": [" Sea", "Pilots"]}),
    "where it stands": (SAME, SAME, {"page_numbers": [3], "labels": ["paragraph"]}, {"labels": ["text"]}),
}
DIFFERENT = {
    "case": (SAME, SAME.upper(), {}, {}),
    "headings": ("Yes.", "Yes.", {"headings": ["Is it waterproof?"]}, {"headings": ["Is it fireproof?"]}),
    "a heading and a first line": ("b", "a b", {"headings": ["a"]}, {}),
    "pictures": ("Figure 1", "Figure 1", {"labels": ["picture"]}, {"labels": ["picture"]}),
    "no words": ("", "", {}, {}),
    "blank": (" \n", " \n", {}, {}),
    "compatibility forms": ("x²", "x2", {}, {}),
}


@pytest.mark.parametrize(
    ("case", "merged"), [(ALIKE[name], True) for name in ALIKE] + [(DIFFERENT[name], False) for name in DIFFERENT]
)
async def test_R13_the_same_passage_has_the_same_text_and_headings(world: World, case: Any, merged: bool) -> None:
    first, second, of_first, of_second = case
    await passages(world, "a", (first, 0.9, of_first))
    await passages(world, "b", (second, 0.8, of_second))
    async with world.client("a", "b") as client:
        found = await client.search(QUERY, dedupe=True, search_type="vector")
    assert found_in(found) == ([("a0", ["b0"])] if merged else [("a0", []), ("b0", [])])


async def test_R13_repetitions_within_one_database_stay(world: World) -> None:
    await passages(world, "a", (SAME, 0.9, {}), (SAME, 0.7, {}))
    await passages(world, "b", (SAME, 0.8, {}), (SAME, 0.6, {}), (SAME, 0.5, {}))
    async with world.client("a", "b") as client:
        assert found_in(await client.search(QUERY, dedupe=True, sources=["a"])) == [("a0", []), ("a1", [])]
        found = await client.search(QUERY, dedupe=True, fusion="cosine")
    assert found_in(found) == [("a0", ["b0", "b2"]), ("a1", ["b1"])]


async def test_R13_a_copy_that_ranks_below_the_limit_is_named_all_the_same(world: World) -> None:
    await passages(world, "a", (SAME, 0.9, {}), ("Another.", 0.8, {}))
    await passages(world, "b", ("A third.", 0.7, {}), (SAME, 0.1, {}))
    async with world.client("a", "b") as client:
        assert found_in(await client.search(QUERY, limit=1, dedupe=True)) == [("a0", ["b1"])]


async def test_R13_a_database_of_weight_zero_and_what_a_threshold_drops_are_not_named(world: World) -> None:
    await passages(world, "a", (SAME, 0.9, {}))
    await passages(world, "b", (SAME, 0.8, {}))
    async with world.client("a", "b") as client:
        assert found_in(await client.search(QUERY, dedupe=True, weights={"b": 0})) == [("a0", [])]
        assert found_in(await client.search(QUERY, dedupe=True, weights={"a": 0})) == [("b0", [])]
        dropped = await client.search(QUERY, dedupe=True, min_score=0.85)
        assert (found_in(dropped), dropped.report.below_min_score) == ([("a0", [])], 1)
        assert found_in(await client.search(QUERY, dedupe=True, boosts={"b": 1})) == [("b0", ["a0"])]


async def test_R13_duplicates_take_no_place_of_their_database_and_a_full_database_yields_to_a_copy(
    world: World,
) -> None:
    await passages(world, "a", ("First.", 0.9, {}), (SAME, 0.8, {}), ("Second.", 0.3, {}))
    await passages(world, "b", ("First.", 0.7, {}), (SAME, 0.6, {}), ("Third.", 0.5, {}))
    async with world.client("a", "b", search={"max_per_source": 1, "dedupe": True, "fusion": "cosine"}) as client:
        assert found_in(await client.search(QUERY)) == [("a0", ["b0"]), ("b1", ["a1"])]
        assert found_in(await client.search(QUERY, dedupe=False)) == [("a0", []), ("b0", [])]


async def test_R13_duplicates_merge_after_a_reranker_too(world: World) -> None:
    await passages(world, "a", ("Other.", 0.9, {}), (SAME, 0.5, {}))
    await passages(world, "b", (SAME, 0.8, {}))
    plugin = Reranking({"a0": 0.1, "a1": 0.9, "b0": 0.9})
    async with reranked(world, plugin, "a", "b") as client:
        found = await client.search(QUERY, limit=2, dedupe=True, search_type="vector")
    assert found_in(found) == [("b0", ["a1"]), ("a0", [])]
    assert plugin.limits == [3]


async def test_R13_a_copy_whose_database_fails_while_it_is_read_is_not_named(world: World) -> None:
    await passages(world, "a", (SAME, 0.9, {}))
    await passages(world, "b", (SAME, 0.8, {}), ("B's.", 0.7, {}))
    world.server.fail("memory://b", OSError("x"), "chunks_by_id")
    async with world.client("a", "b") as client:
        found = await client.search(QUERY, dedupe=True, on_unavailable="skip")
    assert found_in(found) == [("a0", [])]
    assert [entry.name for entry in found.report.left_out] == ["b"]


async def test_R13_it_is_off_by_default_and_a_call_decides_for_itself(world: World) -> None:
    await passages(world, "a", (SAME, 0.9, {}))
    await passages(world, "b", (SAME, 0.8, {}))
    async with world.client("a", "b") as client:
        assert len(await client.search(QUERY)) == 2
        with pytest.raises(TypeError, match="dedupe does not take a str"):
            await client.search(QUERY, dedupe="yes")  # type: ignore[arg-type]  # what is refused
    async with world.client("a", "b", search={"dedupe": True}) as client:
        assert len(await client.search(QUERY)) == 1
        assert len(await client.search(QUERY, dedupe=False)) == 2


async def test_R13_two_states_of_one_database_share_their_documents(world: World) -> None:
    await passages(world, "a", (SAME, 0.9, {}))
    async with HaikuRAG(config=world.config(["a"])) as writer:
        await writer.create_tag("v1")
    placed = {"now": "memory://a", "then": {"location": "memory://a", "tag": "v1"}}
    async with HaikuRAG(config=world.config(placed), read_only=True) as client:
        assert len(await client.search(QUERY)) == 2
        found = await client.search(QUERY, dedupe=True)
    assert [(hit.source, [copy.source for copy in hit.also_in]) for hit in found] == [("now", ["then"])]
