"""Writing, updating and deleting documents."""

from pathlib import Path

import numpy as np
import pytest

from haiku.rag.contracts import CandidateQuery, DocumentWrite, OpenMode
from haiku.rag.errors import DocumentConflictError, EmbeddingError, ReadOnlyError, StorageError
from haiku.rag.models import Chunk
from haiku.rag.storage.lancedb.writing import row_of

pytestmark = pytest.mark.anyio


def text_query(text: str, depth: int = 10) -> CandidateQuery:
    return CandidateQuery(search_type="fts", depth=depth, text=text)


async def listed(database, **fields):
    return await database.list_documents(
        **{"limit": None, "offset": 0, "filter": None, "include_content": False, **fields}
    )


async def test_a_written_document_comes_back_with_all_its_parts(database, make):
    source = make(
        "a.md",
        "first",
        "second",
        title="A",
        metadata={"k": [1, {"é": None}]},
        content_hash="h",
        pictures={"#/0": b"picture"},
        page_images={3: b"page"},
    )
    (stored,) = await database.write([source])
    read = await database.document_by_id(stored.id)
    assert read == stored
    assert (read.uri, read.title, read.metadata, read.content_hash) == ("a.md", "A", {"k": [1, {"é": None}]}, "h")
    assert (read.content, read.chunk_count, read.created_at) == ("first\nsecond", 2, read.updated_at)
    assert read.created_at.utcoffset().total_seconds() == 0
    assert await database.items(stored.id) == list(source.items)
    assert await database.picture(stored.id, "#/0") == b"picture"
    assert await database.picture(stored.id, "page/3") == b"page"
    assert await database.picture(stored.id, "page/4") is None


async def test_writing_nothing_changes_nothing(database):
    assert await database.write([]) == []
    assert await database.count_documents(filter=None) == 0


async def test_a_document_of_the_same_uri_is_replaced_whole_and_keeps_its_id_and_creation(database, make):
    (first,) = await database.write([make("a.md", "old words", title="Old", pictures={"p": b"1"})])
    (second,) = await database.write([make("a.md", "new words", title="New")])
    assert (second.id, second.created_at) == (first.id, first.created_at)
    assert second.updated_at > first.updated_at
    assert [document.title for document in await listed(database)] == ["New"]
    assert (await database.search(text_query("old"))).num_rows == 0
    assert (await database.search(text_query("new"))).num_rows == 1
    assert [item.text for item in await database.items(first.id)] == ["new words"]
    assert await database.picture(first.id, "p") is None


async def test_a_document_without_a_uri_is_known_by_its_id(database, make):
    (first,) = await database.write([make(None, "one")])
    (second,) = await database.write([make(None, "two", id=first.id)])
    (other,) = await database.write([make(None, "two")])
    assert second.id == first.id != other.id
    assert await database.count_documents(filter=None) == 2


async def test_a_given_id_is_kept_for_a_new_document(database, make):
    (stored,) = await database.write([make("a.md", id="given")])
    assert stored.id == "given"


async def test_a_document_found_by_its_id_moves_to_its_new_uri_in_one_row(database, make):
    (first,) = await database.write([make("old.md")])
    (second,) = await database.write([make("new.md", id=first.id)])
    assert (second.id, second.created_at) == (first.id, first.created_at)
    assert [document.uri for document in await listed(database)] == ["new.md"]


async def test_a_uri_that_another_document_holds_is_refused_with_a_sentence(database, make):
    first, _ = await database.write([make("a.md"), make("b.md")])
    with pytest.raises(DocumentConflictError, match=r"^another document .* has the URI 'b.md'\. Delete it"):
        await database.write([make("b.md", id=first.id)])
    with pytest.raises(DocumentConflictError, match=r"another document of database 'notes' has the URI 'b\.md'"):
        await database.update(first.id, uri="b.md", title=None, metadata=None)
    assert [document.uri for document in await listed(database)] == ["a.md", "b.md"]


async def test_of_documents_with_one_uri_in_a_batch_the_last_is_stored(database, make):
    stored = await database.write([make("a.md", "one"), make("b.md"), make("a.md", "two")])
    assert [document.content for document in stored] == ["two", "alpha", "two"]
    assert await database.count_documents(filter=None) == 2


async def test_two_documents_of_a_batch_may_not_share_an_id(database, make):
    with pytest.raises(DocumentConflictError, match="two documents of one batch for database 'notes' have the id 'x'"):
        await database.write([make("a.md", id="x"), make("b.md", id="x")])


async def test_a_batch_is_one_commit_and_keeps_its_order(database, make):
    before = await database._live.tables.documents.version()
    stored = await database.write([make(f"{number}.md", title=str(9 - number)) for number in range(10)])
    assert await database._live.tables.documents.version() == before + 1
    assert [document.id for document in await listed(database)] == [document.id for document in stored]


async def test_a_document_without_chunks_items_or_pictures_is_stored(database):
    (stored,) = await database.write([DocumentWrite(uri="empty.md")])
    assert (stored.chunk_count, await database.items(stored.id)) == (0, [])
    assert (
        await database.search(CandidateQuery(search_type="vector", depth=3, vector=np.ones(8, np.float32)))
    ).num_rows == 0


async def test_embeddings_on_the_chunks_serve_where_no_vectors_are_given(database):
    chunk = Chunk(id="c", content="text", embedding=[1.0] * 8)
    await database.write([DocumentWrite(uri="a.md", chunks=[chunk])])
    found = await database.search(CandidateQuery(search_type="vector", depth=1, vector=np.ones(8, np.float32)))
    assert found["similarity"].to_pylist() == pytest.approx([1.0])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
async def test_a_vector_that_is_not_finite_is_refused_and_names_its_document(database, make, value):
    vectors = np.ones((2, 8), np.float32)
    vectors[1, 3] = value
    with pytest.raises(EmbeddingError, match=r"document 'bad\.md' has a vector that is not finite"):
        await database.write([make("good.md"), make("bad.md", "x", "y", vectors=vectors)])
    assert await database.count_documents(filter=None) == 0


async def test_vectors_of_another_shape_are_refused(database, make):
    with pytest.raises(
        EmbeddingError, match=r"document 'a\.md' has vectors of shape \(1, 7\) for 1 chunks.*8 dimensions"
    ):
        await database.write([make("a.md", vectors=np.ones((1, 7)))])
    with pytest.raises(EmbeddingError, match=r"chunks without an embedding"):
        await database.write([DocumentWrite(uri="a.md", chunks=[Chunk(id="c", content="text")])])


async def test_metadata_that_json_cannot_hold_is_refused(database, make):
    with pytest.raises(StorageError, match=r"the metadata of document 'a\.md' cannot be stored as JSON"):
        await database.write([make("a.md", metadata={"k": object()})])


async def test_lone_surrogates_and_nul_are_cleaned(database, make):
    (stored,) = await database.write(
        [make("a\ud800.md", "be\0fore \udfff after", title="t\0\ud83d", metadata={"k": "\ud800"})]
    )
    assert stored.uri == "a\ufffd.md"
    assert stored.title == "t\ufffd"
    assert stored.metadata == {"k": "\ufffd"}
    assert stored.content == "before \ufffd after"
    assert await database.document_by_uri("a\ud800.md") == stored
    assert (await database.search(text_query("after"))).num_rows == 1


async def test_an_update_changes_what_is_given_and_keeps_the_rest(database, make):
    (stored,) = await database.write([make("a.md", "words", title="Old", metadata={"a": 1})])
    updated = await database.update(stored.id, uri=None, title="New", metadata=None)
    assert (updated.title, updated.uri, updated.metadata, updated.content) == ("New", "a.md", {"a": 1}, "words")
    updated = await database.update(stored.id, uri=None, title=None, metadata={"b": 2})
    assert (updated.title, updated.metadata, updated.created_at) == ("New", {"b": 2}, stored.created_at)
    assert updated.updated_at > stored.updated_at
    assert await database.document_by_id(stored.id) == updated
    found = await database.search(text_query("words"))
    (chunk,) = await database.chunks_by_id(found["chunk_id"].to_pylist())
    assert (chunk.document_title, chunk.document_meta) == ("New", {"b": 2})


async def test_an_update_that_gives_nothing_returns_the_document_as_it_is(database, make):
    (stored,) = await database.write([make("a.md")])
    version = await database._live.tables.documents.version()
    assert await database.update(stored.id, uri=None, title=None, metadata=None) == stored
    assert await database._live.tables.documents.version() == version


async def test_a_changed_uri_is_one_commit_that_leaves_one_row(database, make):
    stored, other = await database.write([make("a.md", "words"), make("o'ther.md")])
    version = await database._live.tables.documents.version()
    updated = await database.update(stored.id, uri="it's.md", title=None, metadata=None)
    assert await database._live.tables.documents.version() == version + 1
    assert (updated.id, updated.uri) == (stored.id, "it's.md")
    assert {document.uri for document in await listed(database)} == {"it's.md", "o'ther.md"}
    assert (await database.search(text_query("words")))["document_id"].to_pylist() == [stored.id]
    assert await database.document_by_uri("a.md") is None
    (again,) = await database.write([make("it's.md", "more")])
    assert again.id == stored.id
    assert await database.delete(other.id)


async def test_an_update_of_a_missing_document_is_none(database):
    assert await database.update("missing", uri=None, title="x", metadata=None) is None


async def test_an_update_meets_a_replacement_by_another_client(open_database, make):
    one, two = await open_database(), await open_database()
    (stored,) = await one.write([make("a.md", "first")])
    tables = one._live.tables
    row = await row_of(tables, stored.id)
    assert row is not None
    await two.write([make("a.md", "second")])
    assert not await one._writer._replace(tables, row, {**row, "title": "late"})
    updated = await one.update(stored.id, uri=None, title="late", metadata=None)
    assert (updated.title, updated.content) == ("late", "second")
    assert (await one.search(text_query("second"))).num_rows == 1


async def test_a_changed_uri_meets_a_replacement_by_another_client(open_database, make):
    one, two = await open_database(), await open_database()
    (stored,) = await one.write([make("a.md", "first")])
    tables = one._live.tables
    row = await row_of(tables, stored.id)
    assert row is not None
    await two.write([make("a.md", "second")])
    assert not await one._writer._replace(tables, row, {**row, "uri": "b.md", "key": "uri:b.md"})
    moved = await one.update(stored.id, uri="b.md", title=None, metadata=None)
    assert (moved.uri, moved.content) == ("b.md", "second")
    assert await listed(one) == await listed(two) == [moved.model_copy(update={"content": None})]


async def test_a_deleted_document_is_gone_with_its_parts(database, make):
    kept, gone = await database.write([make("a.md", "keep"), make("b.md", "gone", pictures={"p": b"x"})])
    assert await database.delete(gone.id)
    assert not await database.delete(gone.id)
    assert await database.document_by_id(gone.id) is None
    assert (await database.search(text_query("gone"))).num_rows == 0
    assert await database.items(gone.id) == []
    assert await database.picture(gone.id, "p") is None
    assert [document.id for document in await listed(database)] == [kept.id]


async def test_a_deleted_uri_can_be_written_again_as_a_new_document(database, make):
    (first,) = await database.write([make("a.md")])
    await database.delete(first.id)
    (second,) = await database.write([make("a.md")])
    assert second.id != first.id


async def test_a_database_opened_for_reading_refuses_every_write_by_name(open_database, make, location: Path):
    await open_database()
    reader = await open_database(mode=OpenMode.READ)
    for operation in (
        reader.write([make("a.md")]),
        reader.update("x", uri=None, title="t", metadata=None),
        reader.delete("x"),
    ):
        with pytest.raises(ReadOnlyError, match="database 'notes' is open for reading only") as caught:
            await operation
        assert caught.value.source == "notes"
        assert str(location) not in str(caught.value)
