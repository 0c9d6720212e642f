"""How much of the attainable text score a hit attained."""

from math import log

import pyarrow as pa
import pytest

from haiku.rag.contracts import CandidateQuery
from haiku.rag.storage.lancedb import statistics
from haiku.rag.storage.lancedb.keywords import WHOLE_NAME, Term, keyword_terms
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.statistics import TermStatistics
from haiku.rag.storage.lancedb.storage import LanceDBStorage
from haiku.rag.storage.lancedb.vocabulary import Vocabulary

pytestmark = pytest.mark.anyio

FERRIES = [f"ferry number {number} of the river" for number in range(30)]


def idf(rows, holding):
    return log(1 + (rows - holding + 0.5) / (holding + 0.5))


async def searched(database, text, **fields):
    asked = CandidateQuery(search_type="fts", depth=10, text=text, **{"with_shares": True, **fields})
    return await database.search(asked)


async def shares(database, text):
    return (await searched(database, text))["keyword_share"].to_pylist()


async def test_the_share_is_the_score_over_the_sum_of_the_terms_weights(open_database, make):
    database = await open_database()
    await database.write([make("a.md", "basalt column", "basalt", *FERRIES)])
    found = await searched(database, "basalt column")
    attainable = 2.2 * (idf(32, 2) + idf(32, 1))
    expected = [score / attainable for score in found["keyword_score"].to_pylist()]
    assert found["keyword_share"].to_pylist() == pytest.approx(expected)
    assert len(expected) == 2


async def test_a_word_that_the_database_lacks_counts_as_its_rarest(open_database, make):
    database = await open_database()
    await database.write([make("a.md", "basalt column", *FERRIES)])
    ((all_there,), (one_missing,)) = await shares(database, "basalt"), await shares(database, "basalt zeppelin")
    assert one_missing == pytest.approx(all_there * idf(31, 1) / (idf(31, 1) + idf(31, 0)))


async def test_a_repeated_word_counts_as_often_as_it_is_asked_for(open_database, make):
    database = await open_database()
    await database.write([make("a.md", "basalt column", *FERRIES)])
    assert await shares(database, "basalt basalt") == pytest.approx(await shares(database, "basalt"))


@pytest.mark.parametrize("text", ["basalt_column C++ parse", '"basalt column" parse', '"C++" parse'])
async def test_no_passage_attains_more_than_everything(open_database, make, text):
    database = await open_database()
    await database.write([make("a.md", " ".join([text.replace('"', "")] * 40), *FERRIES)])
    (share,) = await shares(database, text)
    assert 0.3 < share <= 1.0  # a name is kept once, however often it is written


async def test_stems_count_together(open_database, make):
    engine = LanceDBStorage(LanceDBSettings(fts_language="english"))
    database = await open_database(engine=engine)
    await database.write([make("a.md", "walking", "walked", "walks", *FERRIES)])
    found = await searched(database, "the walking")
    assert found["keyword_share"][0].as_py() == pytest.approx(found["keyword_score"][0].as_py() / (2.2 * idf(33, 3)))


async def test_japanese_is_taken_apart_as_the_index_does(open_database, make):
    database = await open_database()
    await database.write([make("a.md", "橋は1926年に再建された。", "渡し船", *FERRIES)])
    assert max(await shares(database, "橋の再建")) > 0.2


async def test_shares_are_not_looked_up_unless_they_are_wanted(open_database, make, monkeypatch):
    database = await open_database()
    await database.write([make("a.md", "basalt column")])
    monkeypatch.setattr(TermStatistics, "attainable", None)
    found = await searched(database, "basalt", with_shares=False)
    assert found["keyword_share"].to_pylist() == [None]


async def test_a_term_is_looked_up_once_for_each_version_of_the_table(open_database, make, monkeypatch):
    engine = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=0))
    database = await open_database(engine=engine)
    await database.write([make("a.md", "basalt column")])
    asked = []
    lookup = statistics._rows_with

    async def counted(chunks, column, text, **more):
        asked.append(text)
        return await lookup(chunks, column, text, **more)

    monkeypatch.setattr(statistics, "_rows_with", counted)
    before = await shares(database, "basalt ferry")
    assert await shares(database, "ferry basalt") == before
    assert sorted(asked) == ["basalt", "ferry"]
    await database.write([make("b.md", "basalt ferry")])
    assert len(await shares(database, "basalt")) == 2
    assert sorted(asked) == ["basalt", "basalt", "ferry"]


async def test_of_a_very_long_query_some_terms_stand_for_all(open_database, make, monkeypatch):
    monkeypatch.setattr(statistics, "MOST_LOOKUPS", 2)
    database = await open_database()
    await database.write([make("a.md", "one two three four", *FERRIES)])
    found = await searched(database, "one two three four")
    assert found["keyword_share"][0].as_py() == pytest.approx(found["keyword_score"][0].as_py() / (8.8 * idf(31, 1)))


async def test_what_is_kept_is_bounded(open_database, make, monkeypatch):
    monkeypatch.setattr(statistics, "MOST_KEPT", 1)
    database = await open_database()
    await database.write([make("a.md", "basalt column")])
    for text in ("basalt column", "column basalt", "basalt"):
        assert len(await shares(database, text)) == 1


async def test_a_database_without_passages_has_no_shares(open_database, make):
    database = await open_database()
    assert (await searched(database, "basalt")).num_rows == 0
    await database.write([make("a.md")])
    assert (await searched(database, "basalt")).num_rows == 0


MIXED = [
    "Walking's café, cafés; snake_case and parseHttpHeader v2.10 3.14",
    "橋は1926年に再建された。 橋を渡る",
    "ภาษาไทยไม่มีช่องว่าง здравствуйте Ёлка",
    "walk walk walk",
    "x" * 200 + " end",
]


@pytest.mark.parametrize("language", [None, "english"])
async def test_counting_all_terms_at_once_agrees_with_looking_each_up(open_database, make, monkeypatch, language):
    engine = LanceDBStorage(LanceDBSettings(fts_language=language, read_consistency_interval_seconds=60))
    database = await open_database(engine=engine)
    await database.write([make("a.md", *MIXED, *FERRIES)])
    queries = [*MIXED, "ferry river of the number 7 zeppelin"]
    looked_up = [await shares(database, text) for text in queries]
    await database._statistics._counting
    assert database._statistics._vocabulary is not None
    database._statistics._counts.clear()
    asked = []

    async def refuse(chunks, column, text, **more):
        asked.append((column, text))
        return await lookup(chunks, column, text, **more)

    lookup = statistics._rows_with
    monkeypatch.setattr(statistics, "_rows_with", refuse)
    assert [await shares(database, text) for text in queries] == looked_up
    assert {column for column, _ in asked} <= {"identifiers"}


async def test_without_memory_to_keep_them_terms_are_looked_up_for_good(open_database, make):
    engine = LanceDBStorage(LanceDBSettings(vector_memory_mb=0, read_consistency_interval_seconds=60))
    database = await open_database(engine=engine)
    await database.write([make("a.md", "basalt column")])
    assert await shares(database, "basalt column") == await shares(database, "column basalt")
    await database._statistics._counting
    assert database._statistics._vocabulary is None


async def test_closing_stops_the_counting(open_database, make, monkeypatch):
    engine = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=60))
    database = await open_database(engine=engine)
    await database.write([make("a.md", "basalt column")])
    await shares(database, "basalt column")
    counting = database._statistics._counting
    await database.close()
    assert counting.done()


def test_a_table_of_no_text_has_no_terms():
    assert Vocabulary(pa.chunked_array([["", "  "]], pa.string()), str.split).count("word") == 0


def test_the_terms_of_a_query_are_its_words_phrases_and_names():
    assert keyword_terms('"stone bridge" of C++ first_owner', language="english") == (
        Term("text", "stone"),
        Term("text", "bridge"),
        Term("text", "first"),
        Term("text", "owner"),
        Term("identifiers", "c++", WHOLE_NAME),
        Term("identifiers", "first_owner", WHOLE_NAME),
    )
    assert keyword_terms("!!!", language=None) == ()
