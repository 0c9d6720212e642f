"""Tags: made, listed, read at, restored and removed."""

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import lancedb
import pytest

from haiku.rag.contracts import CandidateQuery, OpenMode
from haiku.rag.errors import ConfigMismatchError, ReadOnlyError, StorageError, TagError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb import garbage, generations, restoring, table_tags, tags

pytestmark = pytest.mark.anyio

PARTS = ("documents", "chunks", "items", "pictures")
WORKER = Path(__file__).with_name("lancedb_killed_worker.py")


async def titles(database):
    documents = await database.list_documents(limit=None, offset=0, filter=None, include_content=True)
    return {document.uri: document.title for document in documents}


async def whole(database, vector):
    """Everything that a database holds, read by every way of reading; fails where parts and documents disagree."""
    seen = {}
    documents = await database.list_documents(limit=None, offset=0, filter=None, include_content=True)
    for document in documents:
        items = await database.items(document.id)
        picture = await database.picture(document.id, "p")
        seen[document.uri] = (document, [item.text for item in items], picture)
    info = await database.info()
    assert (info.documents, info.chunks) == (len(documents), sum(document.chunk_count for document in documents))
    found = await database.search(CandidateQuery(search_type="vector", depth=10_000, vector=vector("any")))
    assert found.num_rows == info.chunks
    for chunk in await database.chunks_by_id(found["chunk_id"].to_pylist()):
        assert chunk.content in seen[chunk.document_uri][1]
    return seen


async def handles(location):
    connection = await lancedb.connect_async(location)
    return [await connection.open_table(part) for part in PARTS]


async def test_a_tag_is_made_listed_and_removed(database, make):
    await database.write([make()])
    before = datetime.now(UTC) - timedelta(seconds=5)
    made = await database.create_tag("v1")
    await database.create_tag("2026-01_first.draft")
    assert (made.name, made.complete) == ("v1", True)
    assert before < made.created_at <= datetime.now(UTC) + timedelta(seconds=5)
    listed = await database.tags()
    assert [tag.name for tag in listed] == ["2026-01_first.draft", "v1"]
    assert listed[1] == made
    await database.delete_tag("v1")
    assert [tag.name for tag in await database.tags()] == ["2026-01_first.draft"]
    with pytest.raises(TagError, match="database 'notes' has no tag 'v1'"):
        await database.delete_tag("v1")


async def test_an_empty_database_is_tagged_too(database, open_database):
    assert await database.tags() == []
    await database.create_tag("empty")
    reader = await open_database(mode=OpenMode.READ, tag="empty")
    assert await reader.count_documents(filter=None) == 0


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a/b", "ä", "..", "a..b", ".a", "a.", "a.lock", "x" * 101, "a\n", "a'b", "a:b", "'; --"]
)
async def test_a_name_that_the_engine_cannot_keep_is_refused(database, name):
    with pytest.raises(TagError, match="is not a name for a tag of database 'notes': use up to 100"):
        await database.create_tag(name)
    assert await database.tags() == []


async def test_a_taken_name_is_refused(database):
    await database.create_tag("v1")
    with pytest.raises(TagError, match="database 'notes' has a tag 'v1' already. Choose another name"):
        await database.create_tag("v1")


async def test_a_reader_makes_no_tag_and_sees_them(database, open_database):
    await database.create_tag("v1")
    reader = await open_database(mode=OpenMode.READ)
    for operation in (reader.create_tag, reader.delete_tag, reader.restore_tag):
        with pytest.raises(ReadOnlyError):
            await operation("v1")
    assert [tag.name for tag in await reader.tags()] == ["v1"]


async def test_reading_at_a_tag_shows_what_was_there_then(database, open_database, make, vector):
    (changed, gone) = await database.write(
        [make("a.md", "alpha", "beta", title="Then", pictures={"p": b"old"}), make("gone.md", "gone")]
    )
    await database.create_tag("v1")
    then = await whole(database, vector)
    await database.write([make("a.md", "gamma", title="Now", pictures={"p": b"new"}), make("b.md", "delta")])
    await database.delete(gone.id)
    reader = await open_database(mode=OpenMode.READ, tag="v1")
    for _ in range(4):
        # The third search of a state finds its vectors in memory.
        assert await whole(reader, vector) == then
    assert await reader.picture(changed.id, "p") == b"old"
    found = await reader.search(CandidateQuery(search_type="hybrid", depth=5, text="beta", vector=vector("beta")))
    assert found["document_id"].to_pylist()[0] == changed.id
    assert (await reader.search(CandidateQuery(search_type="fts", depth=5, text="gamma"))).num_rows == 0
    assert await titles(database) == {"a.md": "Now", "b.md": None}


@pytest.fixture
def impatient(monkeypatch):
    """Lets go of everything at once: what nobody needs any more, and a seal whose holder is dead."""
    monkeypatch.setattr(garbage, "SHORTEST_GRACE_SECONDS", -1.0)
    monkeypatch.setattr(generations, "SEAL_SECONDS", 0.2)


@pytest.mark.usefixtures("impatient")
async def test_a_tag_outlives_the_removal_of_what_was_replaced(database, open_database, location, make, vector):
    await database.write([make(f"{number}.md", "old", pictures={"p": b"old"}) for number in range(5)])
    await database.create_tag("v1")
    then = await whole(database, vector)
    for turn in range(3):
        await database.write([make(f"{number}.md", f"new {turn}") for number in range(5)])
    await database.vacuum(retention_seconds=0, dry_run=False)
    chunks = await (await handles(location))[1].query().to_arrow()
    assert set(chunks["content"].to_pylist()) == {"new 2"}
    reader = await open_database(mode=OpenMode.READ, tag="v1")
    assert await whole(reader, vector) == then
    await database.restore_tag("v1")
    assert {uri: parts[1:] for uri, parts in (await whole(database, vector)).items()} == {
        uri: parts[1:] for uri, parts in then.items()
    }


async def test_restoring_brings_back_whole_documents_and_keeps_a_tag_of_the_state_before(
    database, open_database, make, vector
):
    (_, gone, _, renamed) = await database.write(
        [
            make("changed.md", "alpha", "beta", pictures={"p": b"old"}),
            make("gone.md", "gone", metadata={"a": [1]}),
            make("same.md", "same"),
            make("moved.md", "moved"),
        ]
    )
    await database.create_tag("v1")
    then = await whole(database, vector)
    await database.write([make("changed.md", "gamma"), make("new.md", "new")])
    await database.delete(gone.id)
    await database.update(renamed.id, uri="elsewhere.md", title="Moved", metadata={"x": 1})
    now = await whole(database, vector)
    reader = await open_database(mode=OpenMode.READ)
    assert await whole(reader, vector) == now
    before = await database.restore_tag("v1")
    assert await whole(database, vector) == then
    assert await whole(reader, vector) == then
    assert before.startswith("before-restore-20")
    assert [tag.name for tag in await database.tags()] == [before, "v1"]
    assert await whole(await open_database(mode=OpenMode.READ, tag=before), vector) == now
    await database.restore_tag(before)
    assert await whole(database, vector) == now
    await database.restore_tag("v1")
    assert await whole(database, vector) == then


async def test_restoring_the_state_that_is_there_changes_nothing_but_the_tags(database, make):
    await database.write([make()])
    await database.create_tag("v1")
    version = await database._live.tables.documents.version()
    await database.restore_tag("v1")
    await database._live.tables.documents.checkout_latest()
    assert await database._live.tables.documents.version() == version
    assert len(await database.tags()) == 2


async def test_restoring_to_nothing_removes_everything(database, make):
    await database.create_tag("empty")
    await database.write([make("a.md"), make("b.md")])
    await database.restore_tag("empty")
    assert await titles(database) == {}


async def test_restoring_copies_many_documents_in_bounded_batches(database, make, vector, monkeypatch):
    monkeypatch.setattr(restoring, "BATCH_BYTES", 1000)
    monkeypatch.setattr(restoring, "ROWS_AT_ONCE", (8, 8, 1))
    monkeypatch.setattr(restoring, "NAMED_REVISIONS", 3)
    await database.write([make(f"{n}.md", f"old {n}", f"more {n}", pictures={"p": b"%d" % n}) for n in range(50)])
    await database.create_tag("v1")
    then = await whole(database, vector)
    await database.write([make(f"{n}.md", f"new {n}") for n in range(40)])
    await database.restore_tag("v1")
    assert await whole(database, vector) == then


async def test_a_document_that_moves_while_a_tag_is_restored_is_not_there_twice(
    database, open_database, make, monkeypatch
):
    (stored,) = await database.write([make("a.md", title="Then")])
    await database.create_tag("v1")
    await database.update(stored.id, uri=None, title="Now", metadata=None)
    other = await open_database()
    copied = restoring._copy

    async def meanwhile(*arguments, **named):
        await copied(*arguments, **named)
        await other.update(stored.id, uri="b.md", title=None, metadata=None)

    monkeypatch.setattr(restoring, "_copy", meanwhile)
    await database.restore_tag("v1")
    assert await titles(database) == {"a.md": "Then"}


@pytest.mark.parametrize("tag", ["v1", "before"])
async def test_restoring_what_is_not_there_is_an_error_and_makes_no_tag(database, tag):
    with pytest.raises(TagError, match=f"has no tag '{tag}'. List them with: haiku-rag tag list"):
        await database.restore_tag(tag)
    assert await database.tags() == []


async def test_a_tag_whose_making_was_broken_off_is_told_and_made_anew_or_removed(
    database, open_database, location, make
):
    await database.write([make("a.md")])
    for name in ("again", "away"):
        for table in (await handles(location))[1:3]:
            await table.tags.create(name, await table.version())
    await database.write([make("b.md")])
    assert [(tag.name, tag.complete) for tag in await database.tags()] == [("again", False), ("away", False)]
    with pytest.raises(TagError, match="tag 'again' of database 'notes' is not complete and cannot be read"):
        await open_database(mode=OpenMode.READ, tag="again")
    with pytest.raises(TagError, match="'again' of database 'notes' is not complete"):
        await database.restore_tag("again")
    assert (await database.create_tag("again")).complete
    await database.delete_tag("away")
    assert [(tag.name, tag.complete) for tag in await database.tags()] == [("again", True)]
    reader = await open_database(mode=OpenMode.READ, tag="again")
    assert {document.uri for document in await documents_of(reader)} == {"a.md", "b.md"}
    assert len(await reader.items((await documents_of(reader))[1].id)) == 1


async def documents_of(database):
    return await database.list_documents(limit=None, offset=0, filter=None, include_content=False)


async def test_a_tag_that_a_part_lacks_is_made_anew(database, location, make):
    await database.write([make("a.md")])
    await database.create_tag("v1")
    await (await handles(location))[2].tags.delete("v1")
    assert [tag.complete for tag in await database.tags()] == [False]
    await database.write([make("b.md")])
    await database.create_tag("v1")
    assert [tag.complete for tag in await database.tags()] == [True]


async def test_of_two_that_make_one_tag_at_once_one_wins(database, open_database, make):
    await database.write([make()])
    others = [database, *[await open_database() for _ in range(3)]]
    for turn in range(5):
        results = await asyncio.gather(*(one.create_tag(f"v{turn}") for one in others), return_exceptions=True)
        assert sorted(type(result).__name__ for result in results) == ["TagError"] * 3 + ["TagInfo"]
        assert all(tag.complete for tag in await database.tags())


async def test_the_winner_of_two_moves_on_what_the_loser_left_behind(database, location, make, monkeypatch):
    await database.write([make("a.md")])
    chunks = (await handles(location))[1]
    older = await chunks.version()
    await database.write([make("b.md")])
    made = table_tags.created

    async def loser_first(table, name, version):
        await chunks.tags.update(name, older)
        return await made(table, name, version)

    monkeypatch.setattr(tags, "created", loser_first)
    await database.create_tag("v1")
    await chunks.checkout_latest()
    assert (await table_tags.tag_versions(chunks))["v1"] == await chunks.version()


async def test_who_comes_second_to_a_name_is_told_so(database, location, make, monkeypatch):
    await database.write([make("a.md")])
    documents = (await handles(location))[0]
    pinned = table_tags.pin

    async def other_first(table, name, version):
        await table_tags.created(documents, name, 1)
        await pinned(table, name, version)

    monkeypatch.setattr(tags, "pin", other_first)
    with pytest.raises(TagError, match="has a tag 'v1' already"):
        await database.create_tag("v1")


async def test_a_part_s_tag_that_another_makes_meanwhile_is_moved_on(database, location, make, monkeypatch):
    await database.write([make("a.md")])
    chunks = (await handles(location))[1]
    made = table_tags.created

    async def other_first(table, name, version):
        await made(table, name, version - 1)
        return await made(table, name, version)

    monkeypatch.setattr(table_tags, "created", other_first)
    await table_tags.pin(chunks, "v1", await chunks.version())
    assert await table_tags.tag_versions(chunks) == {"v1": await chunks.version()}


async def test_the_listing_survives_a_tag_that_goes_away_meanwhile():
    class Leaving:
        """The tags of a table whose listing fails as often as told."""

        def __init__(self, failures):
            self.failures = failures
            self.tags = self

        async def list(self):
            self.failures -= 1
            if self.failures >= 0:
                raise RuntimeError("lance error: Not found: x.json")
            return {"v1": {"version": 3}}

    assert await table_tags.tag_versions(Leaving(1)) == {"v1": 3}
    with pytest.raises(RuntimeError):
        await table_tags.tag_versions(Leaving(100))


async def test_the_engine_s_other_failures_are_not_taken_for_answers():
    class Broken:
        """A table whose tags fail."""

        def __init__(self):
            self.tags = self

        async def fail(self, *_):
            raise RuntimeError("no space left")

        create = delete = list = fail

    for operation in (
        table_tags.tag_versions(Broken()),
        table_tags.created(Broken(), "v1", 1),
        table_tags.removed(Broken(), "v1"),
    ):
        with pytest.raises(RuntimeError, match="no space left"):
            await operation


async def test_one_location_at_two_states_is_read_as_two_databases(database, open_database, make, vector):
    await database.write([make("a.md", "alpha")])
    await database.create_tag("v1")
    await database.write([make("a.md", "alpha now")])
    query = CandidateQuery(search_type="vector", depth=5, vector=vector("alpha"))
    readers = [await open_database(mode=OpenMode.READ), await open_database(mode=OpenMode.READ, tag="v1", name="then")]
    contents = []
    for reader in readers:
        found = await reader.search(query)
        contents.append([chunk.content for chunk in await reader.chunks_by_id(found["chunk_id"].to_pylist())])
    assert contents == [["alpha now"], ["alpha"]]


@pytest.fixture
def killed(worker_environment, location):
    """Lets a process begin an operation on the tag `v1` and die at a point of it."""

    async def run(operation: str, point: str) -> None:
        command = [sys.executable, str(WORKER), str(location), operation, "v1", point]
        process = await asyncio.create_subprocess_exec(
            *command, env=worker_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await process.communicate()
        assert (process.returncode, err) == (-signal.SIGKILL, b""), out

    return run


OTHER = EmbeddingIdentity(provider="test", model="other", dimension=4, document_prefix="")


async def rebuilt(database, make):
    """The database with the documents of another embedding adopted; one more is written to that."""
    staged = await database.staged(OTHER)
    for document in await documents_of(database):
        parts = await database.parts(document.id)
        await staged.write([replace(parts, vectors=parts.vectors[:, :4], updated_at=document.updated_at)])
    assert await database.adopt()
    await database.write([make("late.md", "late", vectors=[[1, 2, 3, 4]])])


async def test_a_tag_from_before_a_rebuild_is_read_and_restored(database, open_database, make, vector):
    (changed, _) = await database.write([make("a.md", "old", pictures={"p": b"old"}), make("b.md")])
    await database.create_tag("v1")
    then = await whole(database, vector)
    await database.write([make("a.md", "new")])
    await database.delete((await database.document_by_uri("b.md")).id)
    await rebuilt(database, make)
    assert [tag.name for tag in await database.tags()] == ["v1"]
    with pytest.raises(TagError, match="has a tag 'v1' already"):
        await database.create_tag("v1")
    reader = await open_database(mode=OpenMode.READ, tag="v1")
    assert reader.identity.model == "seeded"
    assert await whole(reader, vector) == then
    now = await titles(database)
    before = await database.restore_tag("v1")
    with pytest.raises(ConfigMismatchError, match="rebuilt with another embedding"):
        await database.delete(changed.id)
    after = await open_database()
    assert await whole(after, vector) == then
    assert [tag.name for tag in await after.tags()] == [before, "v1"]
    assert await titles(await open_database(mode=OpenMode.READ, tag=before)) == now
    await after.restore_tag(before)
    assert await titles(await open_database()) == now


async def test_a_tag_from_before_a_rebuild_can_be_removed(database, open_database, make):
    await database.write([make("a.md", "old")])
    await database.create_tag("v1")
    await rebuilt(database, make)
    await database.delete_tag("v1")
    assert await database.tags() == []
    with pytest.raises(TagError):
        await open_database(mode=OpenMode.READ, tag="v1")


async def test_a_generation_that_is_being_dropped_has_no_tags_any_more(database, open_database, location, make):
    await database.write([make("a.md", "old")])
    await database.create_tag("v1")
    await rebuilt(database, make)
    await (await lancedb.connect_async(location)).drop_table("chunks")
    assert await database.tags() == []
    with pytest.raises(TagError, match="has no tag 'v1'"):
        await open_database(mode=OpenMode.READ, tag="v1")
    await database.create_tag("v1")


async def test_restoring_while_another_process_rebuilds_is_an_error_that_says_so(database, make, monkeypatch):
    async def refused(*_):
        return False

    await database.write([make("a.md", "old")])
    await database.create_tag("v1")
    await rebuilt(database, make)
    now = await titles(database)
    monkeypatch.setattr(restoring, "switch", refused)
    with pytest.raises(StorageError, match="was rebuilt or restored by another process meanwhile"):
        await database.restore_tag("v1")
    assert await titles(database) == now
    monkeypatch.undo()
    await database.restore_tag("v1")


async def test_a_rebuild_that_comes_between_two_looks_of_a_restore_is_an_error(database, make, monkeypatch):
    async def was_current(*_):
        return True

    await database.write([make("a.md", "old")])
    await database.create_tag("v1")
    await rebuilt(database, make)
    monkeypatch.setattr(restoring.Restorer, "_is_current", was_current)
    with pytest.raises(StorageError, match="was rebuilt or restored by another process meanwhile"):
        await database.restore_tag("v1")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("point", ["merged:1", "staged:1", "switched:1"])
async def test_killed_while_it_goes_back_to_before_a_rebuild_the_database_opens(
    open_database, make, vector, killed, point
):
    database = await open_database()
    await database.write([make("a.md", "old")])
    await database.create_tag("v1")
    then = await whole(database, vector)
    await database.write([make("a.md", "new")])
    await rebuilt(database, make)
    now = await titles(database)
    await database.close()
    await killed("restore", point)
    after = await open_database()
    if point == "switched:1":
        assert await whole(after, vector) == then
        return
    assert await titles(after) == now
    assert {tag.name: tag.complete for tag in await after.tags()}["v1"]
    await after.restore_tag("v1")
    assert await whole(await open_database(), vector) == then


POINTS = ["pin:1", "pin:3", "created:1", "copied:1", "copied:3", "merged:1", "removed:1", "removed:3"]


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_any_point_the_state_is_the_old_one_or_the_restored_one(
    open_database, make, vector, killed, point
):
    database = await open_database()
    await database.write([make("a.md", "old", pictures={"p": b"old"}), make("gone.md", "gone")])
    then = await whole(database, vector)
    await database.create_tag("v1")
    await database.write([make("a.md", "new", "newer"), make("b.md", "b")])
    await database.delete((await database.document_by_uri("gone.md")).id)
    now = await whole(database, vector)
    await killed("delete" if point.startswith("removed") else "restore", point)
    after = await open_database()
    assert await whole(after, vector) == (then if point.startswith("merged") else now)
    for tag in await after.tags():
        if tag.complete:
            reader = await open_database(mode=OpenMode.READ, tag=tag.name)
            assert await whole(reader, vector) in (then, now)
        else:
            await after.delete_tag(tag.name)
    if "v1" in {tag.name for tag in await after.tags()}:
        await after.restore_tag("v1")
        assert await whole(after, vector) == then


async def test_tags_are_listed_after_a_clean_up_in_the_middle_of_it(database, monkeypatch):
    await database.create_tag("first")
    infos, failures = database._tags.infos, [OSError("Object at location /x not found")]

    async def failing_once():
        if failures:
            raise failures.pop()
        return await infos()

    monkeypatch.setattr(database._tags, "infos", failing_once)
    assert [tag.name for tag in await database.tags()] == ["first"]
    assert not failures


async def test_removing_a_tag_tells_what_was_not_there_from_what_could_not_be_removed():
    class Refusing:
        async def delete(self, name):
            raise OSError("permission denied" if name == "kept" else "Ref not found")

    table = SimpleNamespace(tags=Refusing())
    assert not await table_tags.removed(table, "gone")
    with pytest.raises(OSError, match="permission denied"):
        await table_tags.removed(table, "kept")
