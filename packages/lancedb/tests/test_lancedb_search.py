"""Searching one database."""

import logging
import warnings

import numpy as np
import pytest

from haiku.rag.contracts import CANDIDATE_SCHEMA, CandidateQuery
from haiku.rag.contracts.filters import Comparison
from haiku.rag.errors import EmbeddingError
from haiku.rag.storage.lancedb import memory
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage

pytestmark = pytest.mark.anyio

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


@pytest.fixture(params=["memory", "scan"])
async def searched(request, open_database, make):
    """A database of ten documents of ten chunks, its vectors held in memory or scanned on disk."""
    memory = 512 if request.param == "memory" else 0
    engine = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=0, vector_memory_mb=memory))
    database = await open_database(engine=engine)
    await database.write(
        [make(f"{word}.md", *(f"{word} {other}" for other in WORDS), title=word.upper()) for word in WORDS]
    )
    return database


def query(kind="hybrid", **fields):
    return CandidateQuery(search_type=kind, **{"depth": 5, **fields})


def cosine(one, two):
    return float(one.astype(np.float64) @ two.astype(np.float64) / (np.linalg.norm(one) * np.linalg.norm(two)))


async def contents(database, table):
    return [chunk.content for chunk in await database.chunks_by_id(table["chunk_id"].to_pylist())]


async def test_a_vector_search_orders_by_the_exact_cosine(searched, vector):
    asked = vector("a question")
    every = [f"{one} {other}" for one in WORDS for other in WORDS]
    expected = sorted(every, key=lambda text: -cosine(vector(text), asked))[:5]
    found = await searched.search(query("vector", vector=asked))
    assert found.schema.equals(CANDIDATE_SCHEMA)
    assert await contents(searched, found) == expected
    assert found["similarity"].to_pylist() == pytest.approx(
        [cosine(vector(text), asked) for text in expected], abs=1e-6
    )
    assert found["score"].to_pylist() == found["similarity"].to_pylist()
    assert found["rank"].to_pylist() == found["vector_rank"].to_pylist() == [1, 2, 3, 4, 5]
    assert found["keyword_rank"].null_count == found["keyword_score"].null_count == 5


async def test_a_text_search_orders_by_the_text_score_and_knows_no_similarity(searched):
    found = await searched.search(query("fts", text="beta kappa", depth=2))
    assert set(await contents(searched, found)) == {"beta kappa", "kappa beta"}
    assert found["score"].to_pylist() == found["keyword_score"].to_pylist()
    assert found["similarity"].null_count == found["vector_rank"].null_count == 2


async def test_a_hybrid_search_merges_both_legs_and_knows_every_similarity(searched, vector):
    asked = vector("alpha alpha")
    found = await searched.search(query(text="kappa", vector=asked))
    texts = await contents(searched, found)
    assert 5 < len(texts) <= 10
    assert "alpha alpha" in texts
    assert found["similarity"].to_pylist() == pytest.approx([cosine(vector(text), asked) for text in texts], abs=1e-6)
    assert found["keyword_rank"].null_count == len(texts) - 5
    assert found["score"].to_pylist() == sorted(found["score"].to_pylist(), reverse=True)


@pytest.mark.parametrize("kind", ["hybrid", "vector", "fts"])
async def test_vectors_follow_when_they_are_asked_for(searched, vector, kind):
    found = await searched.search(query(kind, text="kappa", vector=vector("q"), with_vectors=True))
    assert found.schema.names[-1] == "vector"
    rows = np.array(found["vector"].to_pylist(), np.float32)
    expected = np.array([vector(text) for text in await contents(searched, found)])
    assert np.array_equal(rows, expected)


async def test_vectors_are_a_column_of_nothing_where_nothing_is_found(searched, vector):
    found = await searched.search(query(text="kappa", vector=vector("q"), with_vectors=True, filter="uri = 'no'"))
    assert (found.num_rows, found.schema.names[-1]) == (0, "vector")


@pytest.mark.parametrize("kind", ["hybrid", "vector", "fts"])
@pytest.mark.parametrize("selected", [["alpha.md"], [f"{word}.md" for word in WORDS[:8]]])
async def test_a_filter_acts_before_the_legs_choose(searched, vector, kind, selected):
    condition = Comparison("uri", "in", tuple(selected))
    found = await searched.search(query(kind, text="kappa", vector=vector("q"), filter=condition, depth=8))
    chunks = await searched.chunks_by_id(found["chunk_id"].to_pylist())
    assert {chunk.document_uri for chunk in chunks} <= set(selected)
    assert len(chunks) >= (1 if kind == "fts" else 8)


@pytest.mark.parametrize("depth", [0, -1])
async def test_a_depth_below_one_finds_nothing(searched, vector, depth):
    assert (await searched.search(query(text="kappa", vector=vector("q"), depth=depth))).num_rows == 0


async def test_a_depth_beyond_the_database_returns_every_chunk_once(searched, vector):
    found = await searched.search(query(text="kappa", vector=vector("q"), depth=500))
    assert len(set(found["chunk_id"].to_pylist())) == found.num_rows == 100


async def test_a_zero_query_vector_finds_by_text_alone(searched):
    zero = np.zeros(8, np.float32)
    assert (await searched.search(query("vector", vector=zero))).num_rows == 0
    found = await searched.search(query(text="kappa", vector=zero))
    assert found["similarity"].to_pylist() == [0.0] * 5


async def test_a_query_vector_that_is_not_finite_or_has_another_shape_is_an_error(searched):
    with pytest.raises(EmbeddingError, match="the query's vector is not finite"):
        await searched.search(query("vector", vector=np.full(8, np.nan, np.float32)))
    with pytest.raises(EmbeddingError, match=r"has shape \(3,\); database 'notes' holds 8 dimensions") as caught:
        await searched.search(query("vector", vector=np.ones(3, np.float32)))
    assert caught.value.source == "notes"


@pytest.mark.parametrize("length", [1e-18, 1e18])
async def test_a_vector_of_any_length_has_its_cosine(open_database, make, vector, length):
    database = await open_database()
    await database.write([make("a.md", "text", vectors=[vector("text") * np.float32(length)])])
    asked = vector("q") * np.float32(length)
    found = await database.search(query("vector", vector=asked))
    assert found["similarity"].to_pylist() == pytest.approx([cosine(vector("text"), vector("q"))], abs=1e-6)


async def test_a_chunk_with_a_zero_vector_is_found_by_text_and_has_no_similarity(searched, make, vector):
    await searched.write([make("zero.md", "nothingness", vectors=np.zeros((1, 8)))])
    found = await searched.search(query(text="nothingness", vector=vector("q"), depth=200))
    row = await contents(searched, found)
    assert found["similarity"].to_pylist()[row.index("nothingness")] == 0.0
    assert found["vector_rank"].to_pylist()[row.index("nothingness")] is None


async def test_ties_are_broken_by_id(searched, make, vector):
    same = np.tile(np.ones(8, np.float32), (20, 1))
    await searched.write([make("same.md", *(f"same {number}" for number in range(20)), vectors=same)])
    found = await searched.search(query("vector", vector=np.ones(8, np.float32), depth=30))
    tied = [row["chunk_id"] for row in found.to_pylist() if row["similarity"] > 0.9999]
    assert tied == sorted(tied)
    assert len(tied) == 20


@pytest.mark.parametrize(
    "text",
    [
        '"',
        "'",
        "((",
        "kappa)",
        'kappa" AND (',
        "C++",
        "-kappa",
        "kappa*",
        "ka?pa",
        "title:x",
        "a OR NOT",
        "\\",
        "%",
        "\0",
        "\ud800",
        "x " * 2500,
        "kappa~2",
        "^",
        "{}",
        "&&||",
    ],
)
async def test_any_text_is_a_safe_query(searched, vector, text):
    for kind in ("fts", "hybrid"):
        found = await searched.search(query(kind, text=text, vector=vector("q")))
        assert found.num_rows <= 10


@pytest.mark.parametrize("text", ["", "   ", "+-*/", "?!", None, "\0"])
async def test_a_text_without_a_letter_or_digit_finds_nothing_by_text(searched, vector, text):
    assert (await searched.search(query("fts", text=text))).num_rows == 0
    found = await searched.search(query(text=text, vector=vector("q")))
    assert found["keyword_rank"].null_count == found.num_rows == 5


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("我们今天讨论机器学习的基础知识", "机器学习"),
        ("日本語の全文検索エンジン", "検索"),
        ("résumé", "RESUME"),
        ("re\u0301sume\u0301", "résumé"),
        ("Straße", "STRASSE"),
        ("ｶﾅ", "カナ"),
        ("call my_snake_case here", "snake"),
        ("written in C++ mostly", "c++"),
        ("release v1.2.3", "1.2.3"),
        ("mail someone@example.org", "example.org"),
        ("running the runs", "running"),
        ("to be or not", "be"),
        ("ﬁne ligature", "fine"),
        ("Ωmega", "ωMEGA"),
    ],
)
async def test_words_are_found_in_any_script_and_spelling(database, make, stored, asked):
    await database.write([make("a.md", stored), make("b.md", "something else entirely")])
    found = await database.search(query("fts", text=asked))
    assert await contents(database, found) == [stored]


async def test_words_are_not_stemmed(database, make):
    await database.write([make("a.md", "universe"), make("b.md", "university")])
    assert await contents(database, await database.search(query("fts", text="universe"))) == ["universe"]


async def test_headings_are_searched_and_are_not_content(database, make):
    await database.write([make("a.md", "body", headings=["Installation"])])
    found = await database.search(query("fts", text="installation"))
    (chunk,) = await database.chunks_by_id(found["chunk_id"].to_pylist())
    assert (chunk.content, chunk.headings) == ("body", ["Installation"])


async def test_a_row_just_written_is_found_by_text_at_once_in_this_and_another_client(open_database, make):
    one, two = await open_database(), await open_database()
    for number in range(4):
        await one.write([make(f"{number}.md", f"word{number} 机器学习")])
        for client in (one, two):
            assert (await client.search(query("fts", text=f"word{number}"))).num_rows == 1
            assert (await client.search(query("fts", text="机器学习"))).num_rows == number + 1


async def test_an_empty_database_finds_nothing(database, vector):
    for kind in ("hybrid", "vector", "fts"):
        assert (await database.search(query(kind, text="a", vector=vector("q")))).num_rows == 0


@pytest.mark.parametrize("condition", [None, "uri != 'alpha.md'", "uri IN ('beta.md', 'gamma.md')"])
@pytest.mark.parametrize("kind", ["vector", "fts"])
async def test_rows_of_old_revisions_take_nobodys_place(searched, make, vector, kind, condition):
    for turn in range(12):
        await searched.write([make(f"{word}.md", "omega omega", title=str(turn)) for word in WORDS])
    await searched.write([make(f"{word}.md", f"omega {word} and more words of it") for word in WORDS])
    asked = query(kind, text="omega", vector=vector("omega omega"), depth=5, filter=condition)
    found = await searched.search(asked)
    texts = await contents(searched, found)
    assert len(texts) == len(set(texts)) == (2 if condition and "IN" in condition else 5)
    assert all("more words" in text for text in texts)


async def test_a_search_says_nothing_on_stderr_and_warns_of_nothing(searched, vector, capfd, caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        await searched.search(query(text="kappa", vector=vector("q"), with_vectors=True))
    assert capfd.readouterr().err == ""
    assert not caplog.records


async def test_vectors_in_memory_follow_every_write(searched, make, vector):
    asked = vector("fresh text")
    for number in range(3):
        (stored,) = await searched.write([make("fresh.md", "fresh text", f"other {number}")])
        found = await searched.search(query("vector", vector=asked, depth=1))
        assert found["similarity"].to_pylist() == pytest.approx([1.0], abs=1e-6)
        assert found["document_id"].to_pylist() == [stored.id]
    await searched.delete(stored.id)
    found = await searched.search(query("vector", vector=asked, depth=1))
    assert found["similarity"].to_pylist()[0] < 0.999


async def test_a_large_product_gives_the_same_from_a_worker_thread(database, make, vector, monkeypatch):
    await database.write([make("a.md", *WORDS)])
    asked = query("vector", vector=vector("q"))
    inline = await database.search(asked)
    monkeypatch.setattr("haiku.rag.storage.lancedb.search.INLINE_VALUES", 0)
    assert (await database.search(asked)).equals(inline)


async def test_chunks_come_in_the_order_asked_without_the_missing(searched, vector):
    found = (await searched.search(query("vector", vector=vector("q"))))["chunk_id"].to_pylist()
    asked = [found[3], "missing", found[0], "it's"]
    assert [chunk.id for chunk in await searched.chunks_by_id(asked)] == [found[3], found[0]]
    assert await searched.chunks_by_id([]) == []


async def test_a_chunk_tells_everything_about_itself(database, make):
    source = make("a.md", "one", "two", title="T", metadata={"m": 1}, headings=["H"])
    (stored,) = await database.write([source])
    (chunk,) = await database.chunks_by_id([source.chunks[1].id])
    assert chunk == source.chunks[1].model_copy(
        update={"document_id": stored.id, "document_uri": "a.md", "document_title": "T", "document_meta": {"m": 1}}
    )


async def test_a_product_with_threads_finds_the_same(open_database, make, monkeypatch):
    database = await open_database()
    await database.write([make(f"{number}.md", f"alpha {number}") for number in range(60)])
    query = CandidateQuery(search_type="vector", depth=10, vector=np.ones(8, np.float32))
    without = await database.search(query)
    monkeypatch.setattr(memory, "WORTH_THREADS", 1)
    assert (await database.search(query)).equals(without)
