"""What makes searching fast changes no result: what is held in memory, wide filters, indexes, looks beside reads."""

import asyncio
import time

import anyio
import lancedb
import numpy as np
import pyarrow as pa
import pytest

from haiku.rag.contracts import CandidateQuery, DocumentWrite, OpenMode
from haiku.rag.contracts.filters import Comparison
from haiku.rag.storage.lancedb.budget import MemoryBudget
from haiku.rag.storage.lancedb.fetching import fetched
from haiku.rag.storage.lancedb.held_texts import HeldTexts
from haiku.rag.storage.lancedb.memory import VectorMemory
from haiku.rag.storage.lancedb.row_map import RowMap
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.storage import LanceDBStorage
from haiku.rag.storage.lancedb.together import together
from haiku.rag.storage.lancedb.vector_index import build_vector_index

pytestmark = pytest.mark.anyio

KINDS = ["hybrid", "vector", "fts"]


def asked(kind="hybrid", **fields):
    return CandidateQuery(search_type=kind, **{"depth": 5, "text": "alpha", "vector": np.ones(8, np.float32), **fields})


@pytest.fixture(params=[0, 512])
async def small_steps(request, open_database, monkeypatch):
    """A database, with vectors in memory or not, whose legs soon resort to naming revisions."""
    monkeypatch.setattr("haiku.rag.storage.lancedb.legs.MOST_ROWS", 12)
    settings = LanceDBSettings(read_consistency_interval_seconds=0, vector_memory_mb=request.param)
    return await open_database(engine=LanceDBStorage(settings))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 3, 30, 59])
async def test_every_share_of_the_documents_is_searched_as_if_the_rest_were_not_there(small_steps, make, kind, count):
    database = small_steps
    # Texts of one length: equal scores for all, so that words choose by id, and any document may be cut off.
    documents = [make(f"{number}.md", f"alpha {number:02d}", title=str(number)) for number in range(60)]
    await database.write(documents)
    await database.write(documents[:20])
    chosen = [f"{number}.md" for number in range(count)]
    for _ in range(4):
        found = await database.search(asked(kind, filter=Comparison("uri", "in", tuple(chosen)), depth=3))
        chunks = await database.chunks_by_id(found["chunk_id"].to_pylist())
        assert {chunk.document_uri for chunk in chunks} <= set(chosen)
        assert (found.num_rows >= min(3, count)) if kind == "hybrid" else (found.num_rows == min(3, count))
        if kind != "fts":
            whole = await database.search(asked("vector", depth=60))
            facts = await database.chunks_by_id(whole["chunk_id"].to_pylist())
            best = [chunk.id for chunk in facts if chunk.document_uri in chosen][:3]
            by_rank = found.filter(pa.compute.is_valid(found["vector_rank"])).sort_by("vector_rank")
            assert by_rank["chunk_id"].to_pylist() == best


async def test_an_index_changes_neither_the_order_nor_a_similarity(open_database, location, make, monkeypatch):
    monkeypatch.setattr("haiku.rag.storage.lancedb.vectors.LARGE_BYTES", 0)
    database = await open_database()
    await database.write([make(f"{number}.md", f"alpha {number}", f"beta {number}") for number in range(200)])
    queries = [asked(kind, filter=condition) for kind in KINDS for condition in (None, "uri < '2'")]
    before = [await database.search(query) for query in queries]
    connection = await lancedb.connect_async(location)
    await build_vector_index(await connection.open_table("chunks"))
    held = []
    for _ in range(8):
        after = [await database.search(query) for query in queries]
        assert all(one.equals(other) for one, other in zip(before, after, strict=True))
        await database._vectors._loading
        held.append(database._vectors._held)
    assert all(entry.rows is not None for entry in held)
    assert (held[0].memory is None, held[-1].memory is None) == (True, False)


async def test_no_vector_is_read_twice_and_rows_without_direction_are_no_candidates(open_database, make, monkeypatch):
    database = await open_database()
    await database.write([make(f"{number}.md", f"alpha {number}") for number in range(8)])
    await database.search(asked("vector"))
    old = database._vectors._held.memory
    await database.write([make("zero.md", "alpha zero", vectors=np.zeros((1, 8)))])
    found = await database.search(asked(depth=50))
    new = database._vectors._held.memory
    assert len(new.rows) == 9
    assert np.array_equal(new.vectors[:8], old.vectors)
    assert found["vector_rank"].null_count == 1
    await database.update("none", uri=None, title="t", metadata=None)
    (document, *_) = await database.list_documents(limit=1, offset=0, filter=None, include_content=False)
    await database.update(document.id, uri=None, title="another", metadata=None)
    assert (await database.search(asked(depth=50))).num_rows == 9
    assert database._vectors._held.memory.vectors is new.vectors


async def test_rows_come_to_a_memory_that_had_none(database, make):
    await database.write([DocumentWrite(uri="empty.md", vectors=np.empty((0, 8), np.float32))])
    assert (await database.search(asked())).num_rows == 0
    await database.write([make("a.md", "alpha")])
    assert (await database.search(asked())).num_rows == 1


@pytest.mark.parametrize("length", [1e-25, 1e25])
async def test_extreme_vectors_in_memory_have_their_cosines(database, make, length):
    vectors = [np.full(8, length, np.float32), np.arange(8, dtype=np.float32)]
    await database.write([make("a.md", "alpha one", "alpha two", vectors=vectors)])
    found = await database.search(asked("vector", vector=np.full(8, 1e-20, np.float32)))
    assert found["similarity"].to_pylist() == pytest.approx([1.0, 28 / np.sqrt(8 * 140)], abs=1e-6)


async def test_a_vector_memory_of_nothing_finds_nothing(database):
    state = DocumentState((await database._live.state()).table, version=1, uid=b"")
    table = pa.table({"id": pa.array([], pa.string()), "revision": pa.array([], pa.string()), "_rowid": []})
    rows = RowMap(state, table.set_column(2, "_rowid", pa.array([], pa.uint64())))
    memory = VectorMemory(rows, np.empty(0, np.int64), np.empty((0, 8), np.float32))
    assert memory.nearest(np.ones(8), depth=5, chosen=None).tolist() == []
    assert rows.find(np.array([4, 7], np.uint64)).tolist() == [-1, -1]


async def test_texts_are_held_after_a_few_reads_and_follow_every_change(open_database, make, tmp_path):
    database = await open_database()
    for turn in range(2):
        await database.write([make(f"{number}.md", f"alpha {number} {turn}") for number in range(5)])
        for read in range(5):
            found = await database.search(asked(depth=10))
            chunks = await database.chunks_by_id(found["chunk_id"].to_pylist())
            assert sorted(chunk.content for chunk in chunks) == [f"alpha {number} {turn}" for number in range(5)]
            assert (database._texts._table is None) is (read < 2)
    free = database._vectors._budget._free
    await database.close()
    assert database._vectors._budget._free == 512 << 20 > free


async def test_texts_without_room_or_of_many_rows_are_not_held(database, make, monkeypatch):
    await database.write([make("a.md", "alpha")])
    chunks = database._live.tables.chunks
    (row,) = (await chunks.query().with_row_id().to_arrow())["_rowid"].to_pylist()
    poor, many = HeldTexts(MemoryBudget(10)), HeldTexts(MemoryBudget(1 << 20))
    assert [await poor.rows(chunks, [row]) for _ in range(4)] == [None] * 4
    monkeypatch.setattr("haiku.rag.storage.lancedb.held_texts.MOST_ROWS", 0)
    assert [await many.rows(chunks, [row]) for _ in range(4)] == [None] * 4


async def test_what_was_offered_is_forgotten_in_time(database, make, monkeypatch):
    monkeypatch.setattr("haiku.rag.storage.lancedb.offered.MOST_OFFERED", 3)
    await database.write([make(f"{number}.md", f"alpha {number}") for number in range(8)])
    for _ in range(3):
        found = await database.search(asked("fts", depth=8))
        assert len(database._offered._row_ids) == 8
        assert len(await database.chunks_by_id(found["chunk_id"].to_pylist())) == 8


async def test_fetching_gives_what_the_engine_gives(database, make):
    await database.write([make(f"{number}.md", f"alpha {number}") for number in range(8)])
    chunks = database._live.tables.chunks
    queries = [
        (lambda: chunks.query().nearest_to_text("alpha").select(["id", "_score"]).limit(3).with_row_id(), 3),
        (lambda: chunks.query().nearest_to(np.ones(8, np.float32)).select(["id", "_distance"]).limit(3), 3),
        (lambda: chunks.take_row_ids([2, 5]).select(["id", "content"]), 2),
        (lambda: chunks.query().where("id = 'none'").select(["id"]), None),
        (lambda: chunks.query().select(["id"]), None),
    ]
    for query, at_most in queries:
        assert (await fetched(query(), at_most=at_most)).equals(await query().to_arrow())


async def test_a_look_is_taken_beside_the_reads_before_it_is_due(open_database, make):
    patient = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=3600))
    one, two = await open_database(engine=patient), await open_database(engine=patient)
    assert await two.count_documents(filter=None) == 0
    await one.write([make()])
    two._live._ahead = 0.0
    assert await two.count_documents(filter=None) == 0
    await two._live._looking
    assert await two.count_documents(filter=None) == 1
    assert two._live._ahead < two._live._due <= time.monotonic() + 3600


async def test_a_look_beside_the_reads_that_fails_is_left_to_them(open_database, make, monkeypatch):
    patient = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=3600))
    database = await open_database(engine=patient)
    await database.write([make()])
    assert await database.count_documents(filter=None) == 1

    async def broken():
        raise OSError

    monkeypatch.setattr(database._live, "_refreshed", broken)
    database._live._ahead = 0.0
    assert await database.count_documents(filter=None) == 1
    await database._live._looking
    assert await database.count_documents(filter=None) == 1


async def test_closing_ends_a_look_beside_the_reads(open_database, make, monkeypatch):
    database = await open_database(engine=LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=3600)))
    await database.count_documents(filter=None)
    monkeypatch.setattr(database._live, "_refreshed", anyio.sleep_forever)
    database._live._ahead = 0.0
    await database.count_documents(filter=None)
    await database.close()
    assert database._live._looking.done()


async def test_a_searchs_chunks_stand_still_while_another_process_compacts(open_database, location, make):
    patient = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=3600))
    writer, reader = await open_database(), await open_database(mode=OpenMode.READ, engine=patient)
    for number in range(5):
        await writer.write([make(f"{number}.md", f"alpha {number}")])
    before = await reader.search(asked(depth=10))
    connection = await lancedb.connect_async(location)
    await (await connection.open_table("chunks")).optimize()
    assert (await reader.search(asked(depth=10))).equals(before)
    assert len(await reader.chunks_by_id(before["chunk_id"].to_pylist())) == 5


async def test_two_at_once_give_both_results_in_order():
    async def give(value):
        await asyncio.sleep(0)
        return value

    assert await together(lambda: give(1), lambda: give("two")) == (1, "two")


@pytest.mark.parametrize("first_fails", [True, False])
async def test_when_one_of_two_fails_the_other_is_cancelled_and_awaited(first_fails):
    ended = []

    async def wait():
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await asyncio.sleep(0)
            ended.append("cancelled")

    async def fail():
        await asyncio.sleep(0)
        raise OSError("the leg broke")

    operations = (fail, wait) if first_fails else (wait, fail)
    with pytest.raises(OSError, match="the leg broke"):
        await together(*operations)
    assert ended == ["cancelled"]


async def test_a_cancelled_search_ends_both_of_its_legs(open_database, make, monkeypatch):
    database = await open_database(engine=LanceDBStorage(LanceDBSettings(vector_memory_mb=0)))
    await database.write([make()])
    started = []

    async def forever(*_, **__):
        started.append("leg")
        await anyio.sleep_forever()

    monkeypatch.setattr("haiku.rag.storage.lancedb.search.fetch_leg", forever)
    with anyio.move_on_after(0.05) as scope:
        await database.search(asked())
    assert scope.cancelled_caught
    assert started == ["leg", "leg"]


async def test_rows_that_text_searches_brought_serve_while_the_vectors_are_read(open_database, make, monkeypatch):
    monkeypatch.setattr("haiku.rag.storage.lancedb.vectors.LARGE_BYTES", 0)
    database = await open_database()
    await database.write([make(f"{number}.md", f"alpha {number}") for number in range(8)])
    for _ in range(3):
        await database.search(asked("fts"))
    assert database._vectors._held.memory is None
    before = await database.search(asked())
    await database._vectors._loading
    assert database._vectors._held.memory is not None
    assert (await database.search(asked())).equals(before)
