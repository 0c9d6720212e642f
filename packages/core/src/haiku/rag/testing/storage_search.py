# ruff: noqa: D102 - a test's name is its documentation
"""Clauses 27 to 33 and 70 of the storage contract: searching."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from haiku.rag.contracts.candidates import CANDIDATE_SCHEMA, RRF_K
from haiku.rag.contracts.storage import CandidateQuery, Database, DocumentWrite, Storage
from haiku.rag.models import Document
from haiku.rag.testing.storage_fixtures import (
    DIMENSION,
    OpenDatabase,
    StorageFixtures,
    document,
    hybrid_query,
    ids_of,
    text_query,
    vector_query,
    vectors_of,
)

if TYPE_CHECKING:
    from haiku.rag.contracts.storage import FederatedStorage

QUERY = np.array([1.0, -2.0, 0.5, 3.0, 0.0, 1.0, -1.0, 0.25], dtype=np.float32)
TEXTS = ("stone bridge", "stone stone stone", "a ferry", "the Bridge of STONE and more words", "owls", "bridge")
ODD_QUERIES = (
    '"unbalanced',
    "AND OR NOT",
    "stone AND",
    "NEAR(stone bridge)",
    "title:stone",
    "field:(a b",
    "ston*",
    "-stone",
    "stone^2",
    "O'Brien",
    "c++ %_\\",
    "橋を渡る",
    "🦀",
    "stone\x07bridge",
    "stone " * 3000,
)
WORDLESS_QUERIES = ("!!!", "   ", '"', "()", "_", "*", "…")


class SearchClauses(StorageFixtures):
    """Clauses 27 to 33, and 70."""

    @pytest.mark.parametrize(
        "query", [vector_query(QUERY), text_query("stone bridge"), hybrid_query("stone bridge", QUERY)]
    )
    async def test_27_candidates_are_a_ranking(self, open_database: OpenDatabase, query: CandidateQuery) -> None:
        database = await open_database()
        writes = await _write_texts(database)
        table = await database.search(query)
        assert table.num_rows > 0
        _assert_ranking(table)
        owners = {chunk: write.title for write in writes for chunk in ids_of(write)}
        documents = {entry.id: entry.title for entry in await _documents(database)}
        for row in table.to_pylist():
            assert documents[row["document_id"]] == owners[row["chunk_id"]]

    async def test_28_a_vector_search_is_exact(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        vectors = vectors_of(60)
        writes = [
            document(*(f"text {number}" for number in range(20)), title=str(part), vectors=vectors[part * 20 :][:20])
            for part in range(3)
        ]
        await database.write(writes)
        ids = [chunk for write in writes for chunk in ids_of(write)]
        expected = dict(zip(ids, _cosines(vectors, QUERY), strict=True))
        table = await database.search(vector_query(QUERY, depth=25))
        assert table.num_rows == 25
        best = sorted(expected, key=lambda chunk: -expected[chunk])[:25]
        assert table["chunk_id"].to_pylist() == best
        np.testing.assert_allclose(table["similarity"].to_numpy(), [expected[chunk] for chunk in best], atol=1e-5)
        np.testing.assert_allclose(table["score"].to_numpy(), table["similarity"].to_numpy())
        assert table["vector_rank"].to_pylist() == list(range(1, 26))
        assert table["keyword_rank"].null_count == 25

    async def test_29_a_text_search_finds_words_in_any_case(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        writes = await _write_texts(database)
        table = await database.search(text_query("Stone"))
        holding = {ids_of(write)[0] for write in writes if "stone" in write.content.lower()}
        assert set(table["chunk_id"].to_pylist()) == holding
        scores = table["keyword_score"].to_numpy()
        assert (scores > 0).all()
        np.testing.assert_allclose(table["score"].to_numpy(), scores)
        assert table["similarity"].null_count == table.num_rows
        assert table["keyword_rank"].to_pylist() == table["rank"].to_pylist()
        assert (await database.search(text_query("stone", depth=2))).num_rows == 2
        assert (await database.search(text_query("zeppelin"))).num_rows == 0

    async def test_30_a_hybrid_search_has_both_legs(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        writes = await _write_texts(database)
        vectors = {ids_of(write)[0]: np.asarray(write.vectors)[0] for write in writes}
        table = await database.search(hybrid_query("stone", QUERY, depth=2))
        assert 2 <= table.num_rows <= 4
        rows = table.to_pylist()
        for leg in ("vector_rank", "keyword_rank"):
            assert sorted(row[leg] for row in rows if row[leg]) == [1, 2]
        for row in rows:
            cosine = _cosines(vectors[row["chunk_id"]][None], QUERY)[0]
            assert row["similarity"] == pytest.approx(cosine, abs=1e-5)
            ranks = [row[leg] for leg in ("vector_rank", "keyword_rank") if row[leg]]
            assert row["score"] == pytest.approx(sum(1 / (RRF_K + rank) for rank in ranks))
            assert (row["keyword_score"] is None) == (row["keyword_rank"] is None)
        alone = await database.search(vector_query(QUERY, depth=2))
        assert {row["chunk_id"] for row in rows if row["vector_rank"]} == set(alone["chunk_id"].to_pylist())

    @pytest.mark.parametrize("text", ODD_QUERIES, ids=lambda text: ascii(text[:20]))
    async def test_31_odd_queries_are_no_error(self, open_database: OpenDatabase, text: str) -> None:
        database = await open_database()
        await _write_texts(database)
        for query in (text_query(text), hybrid_query(text, QUERY)):
            _assert_ranking(await database.search(query))

    @pytest.mark.parametrize("text", WORDLESS_QUERIES, ids=ascii)
    async def test_31_a_query_without_a_letter_finds_nothing_by_text(
        self, open_database: OpenDatabase, text: str
    ) -> None:
        database = await open_database()
        await _write_texts(database)
        await database.write([document('!!! " () _ * …')])
        assert (await database.search(text_query(text))).num_rows == 0
        table = await database.search(hybrid_query(text, QUERY))
        assert table["keyword_rank"].null_count == table.num_rows == len(TEXTS) + 1

    async def test_32_vectors_come_when_asked_for(self, open_database: OpenDatabase) -> None:
        database = await open_database()
        writes = await _write_texts(database)
        stored = {ids_of(write)[0]: np.asarray(write.vectors)[0] for write in writes}
        for query in (vector_query(QUERY, with_vectors=True), text_query("stone", with_vectors=True)):
            table = await database.search(query)
            assert table.schema.field("vector").type == pa.list_(pa.float32(), DIMENSION)
            for row in table.to_pylist():
                np.testing.assert_allclose(row["vector"], stored[row["chunk_id"]], rtol=1e-6)
        assert "vector" not in (await database.search(vector_query(QUERY))).column_names

    @pytest.mark.parametrize(
        "query", [vector_query(QUERY), text_query("stone bridge"), hybrid_query("stone bridge", QUERY, depth=3)]
    )
    async def test_33_one_call_for_several_gives_what_asking_each_gives(
        self, storage: Storage, open_database: OpenDatabase, query: CandidateQuery
    ) -> None:
        if not self.searches_many:
            pytest.skip("the engine answers for one database at a time")
        databases = [await open_database(name) for name in ("one", "two", "empty")]
        for database in databases[:2]:
            await _write_texts(database)
        many = cast("FederatedStorage", storage)
        apart = [await database.search(query) for database in databases]
        together = await many.search_many(databases, query)
        assert len(together) == 3
        for left, right in zip(apart, together, strict=True):
            assert not isinstance(right, Exception)
            assert right.equals(left)
        backwards = await many.search_many(databases[::-1], query)
        assert [answer for answer in backwards if isinstance(answer, Exception)] == []

    @pytest.mark.parametrize("kind", ["fts", "hybrid"])
    async def test_70_shares_say_how_much_of_the_attainable_a_hit_attained(
        self, open_database: OpenDatabase, kind: str
    ) -> None:
        database = await open_database()
        await database.write([document(text) for text in (*TEXTS, "zinc roof", "zinc roof zinc roof zinc roof")])

        async def shares(text: str, *, wanted: bool = True) -> list[float | None]:
            more = {"depth": 50, "with_shares": wanted}
            query = text_query(text, **more) if kind == "fts" else hybrid_query(text, QUERY, **more)
            table = (await database.search(query)).sort_by("keyword_rank")
            named: list[float | None] = table["keyword_share"].to_pylist()[
                : table.num_rows - table["keyword_rank"].null_count
            ]
            assert table["keyword_share"].null_count == table.num_rows - len(named) + named.count(None)
            return named

        assert await shares("zinc roof", wanted=False) == [None, None]
        found = await shares("zinc roof")
        if None in found:
            pytest.skip("the engine cannot tell what is attainable")
        most, less = (share or 0.0 for share in found)
        assert 0.2 < less < most <= 1.0
        with_stranger = await shares("zinc roof zeppelin")
        assert [share for share in with_stranger if share is None or share >= most] == []


async def _write_texts(database: Database) -> list[DocumentWrite]:
    writes = [
        document(text, title=f"title {number}", vectors=vectors_of(1, seed=number)) for number, text in enumerate(TEXTS)
    ]
    await database.write(writes)
    return writes


async def _documents(database: Database) -> list[Document]:
    return await database.list_documents(limit=None, offset=0, filter=None, include_content=False)


def _assert_ranking(table: pa.Table) -> None:
    assert table.schema.equals(CANDIDATE_SCHEMA)
    assert table["rank"].to_pylist() == list(range(1, table.num_rows + 1))
    scores = table["score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    assert len(set(table["chunk_id"].to_pylist())) == table.num_rows


def _cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float64]:
    rows, wanted = vectors.astype(np.float64), query.astype(np.float64)
    cosines: NDArray[np.float64] = rows @ wanted / (np.linalg.norm(rows, axis=1) * np.linalg.norm(wanted))
    return cosines
