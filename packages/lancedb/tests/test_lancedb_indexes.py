"""Indexes that a database has by itself, and what they leave unchanged."""

import asyncio
from typing import Any

import numpy as np
import pytest

from haiku.rag.contracts import CandidateQuery, OpenMode
from haiku.rag.errors import ReadOnlyError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb import indexes, vector_index
from haiku.rag.storage.lancedb.indexes import Lag, lags, lookups
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage
from haiku.rag.storage.lancedb.vector_index import VECTOR_INDEX, build_vector_index, tuned

pytestmark = pytest.mark.anyio

ROWS, DIMENSION = 600, 16
SCANNING = LanceDBSettings(read_consistency_interval_seconds=0, vector_memory_mb=0)


@pytest.fixture
async def large(open_database, make):
    """A database of 600 unnormalised vectors that holds none of them in memory."""
    random = np.random.default_rng(5)
    vectors = random.normal(size=(ROWS, DIMENSION)) * random.uniform(0.1, 30, size=(ROWS, 1))
    identity = EmbeddingIdentity(provider="test", model="wide", dimension=DIMENSION)
    database = await open_database(identity=identity, engine=LanceDBStorage(SCANNING))
    for start in range(0, ROWS, 100):
        texts = [f"text {number}" for number in range(start, start + 100)]
        await database.write([make(f"{start}.md", *texts, vectors=vectors[start : start + 100])])
    return database


def nearest(vector: np.ndarray, depth: int = 10) -> CandidateQuery:
    return CandidateQuery(search_type="vector", depth=depth, vector=vector.astype(np.float32))


async def ranking(database, query):
    found = (await database.search(query)).to_pylist()
    return [(row["chunk_id"], row["similarity"]) for row in found]


async def test_an_index_changes_neither_the_ranking_nor_the_similarities(large):
    queries = [nearest(vector) for vector in np.random.default_rng(7).normal(size=(20, DIMENSION))]
    before = [await ranking(large, query) for query in queries]
    assert VECTOR_INDEX in await large.create_index()
    for query, expected in zip(queries, before, strict=True):
        found = await ranking(large, query)
        assert [chunk for chunk, _ in found[:3]] == [chunk for chunk, _ in expected[:3]]
        np.testing.assert_allclose([value for _, value in found], [value for _, value in expected], atol=1e-5)


async def test_rows_that_the_index_does_not_cover_yet_are_found(large, make):
    await large.create_index()
    vector = np.random.default_rng(9).normal(size=DIMENSION)
    await large.write([make("new.md", "the newest", vectors=[vector * 7])])
    (first, *_), *_ = [await ranking(large, nearest(vector, 3))]
    (chunk,) = await large.chunks_by_id([first[0]])
    assert (chunk.content, round(first[1], 5)) == ("the newest", 1.0)


async def test_a_zero_vector_is_found_neither_with_the_index_nor_without(large, make):
    await large.write([make("zero.md", "nothing", vectors=[np.zeros(DIMENSION)])])
    everything = nearest(np.ones(DIMENSION), 2 * ROWS)
    before = await ranking(large, everything)
    await large.create_index()
    assert len(await ranking(large, everything)) == len(before) == ROWS


async def test_recall_holds_where_vectors_have_no_structure(open_database, make):
    random = np.random.default_rng(3)
    vectors = random.normal(size=(4000, 64)).astype(np.float32)
    identity = EmbeddingIdentity(provider="test", model="wide", dimension=64)
    database = await open_database(identity=identity)
    await database.write([make("a.md", *map(str, range(4000)), vectors=vectors)])
    chunks = database._live.tables.chunks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_index, "ROWS_A_PARTITION", 200)
        await build_vector_index(chunks)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    hits = 0
    for query in random.normal(size=(20, 64)).astype(np.float32):
        found = await tuned(chunks.query().nearest_to(query)).limit(10).select(["content", "_distance"]).to_arrow()
        exact = np.argsort(-(unit @ query))[:10]
        hits += len(set(map(str, exact)) & set(found["content"].to_pylist()))
    assert hits >= 198


async def test_a_vector_index_comes_by_itself_once_it_is_worthwhile(open_database, make, monkeypatch):
    database = await open_database()
    await database.write([make("a.md", *map(str, range(30)))])
    await database.vacuum(retention_seconds=None, dry_run=False)
    assert VECTOR_INDEX not in (await database.info()).indexes
    monkeypatch.setattr(vector_index, "WORTHWHILE_BYTES", 30 * 8 * 4)
    await database.vacuum(retention_seconds=None, dry_run=False)
    assert (await database.info()).indexes[VECTOR_INDEX] == "IvfSq, 30 rows, 0 not covered"


async def test_an_index_in_too_many_parts_is_built_again(large):
    class Stats:
        num_indices = vector_index.MOST_PARTS + 1

    assert vector_index.is_outgrown(Stats())
    assert not vector_index.is_outgrown(None)
    await large.create_index()
    assert not await indexes.lacks_vector_index(large._live.tables)


def test_a_large_index_has_more_partitions():
    assert [vector_index.partitions(rows) for rows in (1, 10_000, 100_000, 500_000)] == [1, 1, 6, 30]
    assert not vector_index.is_worthwhile(21_000, 384)
    assert vector_index.is_worthwhile(22_000, 384)


async def test_values_are_looked_up_through_indexes_but_never_the_documents_key(large, monkeypatch):
    monkeypatch.setattr(indexes, "MANY_DOCUMENTS", 1)
    await large.create_index()
    tables = large._live.tables
    wanted = {("chunks", "id"), ("chunks", "revision"), ("items", "revision"), ("documents", "id")}
    found = {
        (table.name, column)
        for table in tables.parts
        for index in await table.list_indices()
        if index.index_type == "BTree"
        for column in index.columns
    }
    assert found == wanted, "there are no pictures"
    assert "key" not in {lookup.column for lookup in lookups(tables)}


async def test_an_index_on_the_id_lets_no_document_be_doubled(open_database, make, monkeypatch):
    monkeypatch.setattr(indexes, "MANY_DOCUMENTS", 1)
    clients = [await open_database() for _ in range(4)]
    await clients[0].write([make("first.md")])
    await clients[0].create_index()
    await asyncio.gather(*(client.write([make(f"{n}.md") for n in range(5)]) for client in clients for _ in range(3)))
    assert await clients[0].count_documents(filter=None) == 6


async def test_create_index_says_what_info_then_says(large):
    said = await large.create_index()
    assert said == (await large.info()).indexes
    assert {"text_idx", "identifiers_idx", "id_idx", "revision_idx", VECTOR_INDEX} <= {
        name.rpartition(".")[2] for name in said
    }
    assert all(" 0 not covered" in text for text in said.values())


async def test_create_index_of_an_empty_database_builds_nothing(open_database):
    database = await open_database()
    assert await database.create_index() == {}


async def test_create_index_needs_a_database_that_is_open_for_writing(open_database, make):
    await (await open_database()).write([make()])
    with pytest.raises(ReadOnlyError):
        await (await open_database(mode=OpenMode.READ)).create_index()


async def test_create_index_takes_over_the_language_that_is_configured(open_database, make):
    await (await open_database()).write([make("a.md", "the houses")])
    english = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=0, fts_language="english"))
    database = await open_database(engine=english)
    assert (await database.info()).language is None
    await database.create_index()
    assert (await database.info()).language == "english"
    found = await database.search(CandidateQuery(search_type="fts", depth=5, text="house"))
    assert found.num_rows == 1


async def test_indexes_are_caught_up_in_proportion(large, make):
    await large.create_index()
    await large.write([make("new.md", "one", "two", vectors=np.ones((2, DIMENSION)))])
    found = {lag.index: lag.uncovered for lag in await lags(large._live.tables)}
    assert {found[name] for name in ("text_idx", "id_idx", VECTOR_INDEX)} == {2}
    await large.vacuum(retention_seconds=None, dry_run=False)
    assert await lags(large._live.tables) == []


@pytest.mark.parametrize(
    ("uncovered", "rows", "worth_it"),
    [(1, 2_000, True), (999, 5_000, False), (1_000, 5_000, True), (1_000, 50_000, False), (5_000, 50_000, True)],
)
def test_a_lag_is_worth_catching_up_when_it_is_large_or_the_table_small(uncovered, rows, worth_it):
    async def build() -> None:
        """Never called."""

    table: Any = None
    lag = Lag(table=table, index="id_idx", uncovered=uncovered, rows=rows, build=build)
    assert lag.is_worth_it(1_000, 0.1) is worth_it
