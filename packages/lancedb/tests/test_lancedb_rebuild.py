"""Capability `rebuild`: documents with all their parts, written back in place or into a generation of their own."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from haiku.rag.contracts import CandidateQuery, OpenMode
from haiku.rag.errors import ConfigMismatchError, MissingDatabaseError, ReadOnlyError, StorageError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb import generations, staging
from haiku.rag.storage.lancedb.generations import change_layout, layouts_now, sealed, settled_layout, switch
from haiku.rag.storage.lancedb.live import LiveTables

pytestmark = pytest.mark.anyio

OTHER = EmbeddingIdentity(provider="test", model="other", dimension=4)
SAME = EmbeddingIdentity(provider="test", model="seeded", dimension=8, document_prefix="doc: ")
MOMENT = datetime(2020, 5, 17, 3, 4, 5, 678901, tzinfo=UTC)


def text_query(text):
    return CandidateQuery(search_type="fts", depth=10, text=text)


async def states(database):
    layouts = await layouts_now(database._live.tables.settings, database._live.ref)
    return {layout.generation: layout.state for layout in layouts}


async def stage_all(database, identity=OTHER, **options):
    """Copy every document to a staged database, with vectors of its dimension."""
    staged = await database.staged(identity, **options)
    for document in await listed(database):
        await staged.write([await converted(database, document.id, identity)])
    return staged


async def converted(database, document_id, identity=OTHER):
    parts = await database.parts(document_id)
    return replace(parts, vectors=np.full((len(parts.chunks), identity.dimension), 0.5, np.float32))


async def listed(database):
    return await database.list_documents(limit=None, offset=0, filter=None, include_content=True)


async def test_parts_are_what_was_written_with_vectors_and_moments(database, make):
    source = make(
        "a.md",
        "one",
        "two",
        title="A",
        metadata={"k": 1},
        content_hash="h",
        pictures={"#/0": b"picture"},
        page_images={12: b"page"},
        headings=["H"],
    )
    (stored,) = await database.write([source])
    parts = await database.parts(stored.id)
    given = replace(source, id=stored.id, created_at=stored.created_at, updated_at=stored.updated_at, vectors=None)
    assert replace(parts, vectors=None) == given
    assert np.array_equal(parts.vectors, source.vectors)
    assert await database.parts("missing") is None


async def test_parts_of_a_document_without_any_are_none_of_any(database, make):
    (stored,) = await database.write([replace(make("a.md"), chunks=[], items=[], vectors=None)])
    parts = await database.parts(stored.id)
    assert (parts.vectors.shape, list(parts.items), dict(parts.pictures)) == ((0, 8), [], {})


async def test_parts_follow_a_write_that_came_after_the_state_was_taken(open_database, make):
    one, two = await open_database(), await open_database()
    one._live._interval = 100
    (stored,) = await one.write([make("a.md", "old")])
    await one.count_documents(filter=None)
    await two.write([make("a.md", "new")])
    await one._live.tables.documents.checkout_latest()
    assert (await one.parts(stored.id)).content == "new"
    await two.delete(stored.id)
    await one._live.tables.documents.checkout_latest()
    assert await one.parts(stored.id) is None


async def test_moments_that_a_document_brings_are_kept(database, make):
    later = MOMENT + timedelta(days=1)
    (stored,) = await database.write([make("a.md", created_at=MOMENT, updated_at=later)])
    assert (stored.created_at, stored.updated_at) == (MOMENT, later)
    assert await database.document_by_id(stored.id) == stored
    (again,) = await database.write([make("a.md", "new")])
    assert (again.id, again.created_at) == (stored.id, MOMENT)
    assert again.updated_at > later


async def test_a_document_is_rewritten_in_one_commit_and_keeps_its_id_its_uri_and_its_creation(database, make):
    (stored,) = await database.write([make("a.md", "old words", pictures={"p": b"1"})])
    version = await database._live.tables.documents.version()
    rewritten = await database.rewrite(make("other.md", "new words", title="New"), seen=stored)
    assert await database._live.tables.documents.version() == version + 1
    assert (rewritten.id, rewritten.uri, rewritten.created_at) == (stored.id, "a.md", stored.created_at)
    assert rewritten.updated_at > stored.updated_at
    assert await listed(database) == [rewritten]
    assert (await database.search(text_query("old"))).num_rows == 0
    assert (await database.search(text_query("new"))).num_rows == 1
    assert await database.picture(stored.id, "p") is None


async def test_a_document_that_changed_or_went_since_it_was_seen_is_not_rewritten(open_database, make):
    one, two = await open_database(), await open_database()
    (stored,) = await one.write([make("a.md", "first")])
    renamed = await two.update(stored.id, uri=None, title="renamed", metadata=None)
    assert await one.rewrite(make("a.md", "late"), seen=stored) is None
    assert await two.document_by_id(stored.id) == renamed
    await two.delete(stored.id)
    assert await one.rewrite(make("a.md", "late"), seen=renamed) is None
    assert await listed(one) == []


async def test_a_change_between_looking_and_committing_is_not_undone(open_database, make, monkeypatch):
    one, two = await open_database(), await open_database()
    (stored,) = await one.write([make("a.md", "first")])
    parts = one._writer._parts

    async def slow(*given):
        rows = await parts(*given)
        await two.update(stored.id, uri=None, title="renamed", metadata=None)
        return rows

    monkeypatch.setattr(one._writer, "_parts", slow)
    assert await one.rewrite(make("a.md", "late"), seen=stored) is None
    (left,) = await listed(one)
    assert (left.title, left.content) == ("renamed", "first")


async def test_chunks_that_a_search_offered_are_found_after_a_rewrite_that_keeps_their_ids(
    open_database, make, monkeypatch
):
    database, reader = await open_database(), await open_database(mode=OpenMode.READ)
    (stored,) = await database.write([make("a.md", "words")])
    parts, store = await database.parts(stored.id), database._writer._parts
    offered: list[str] = []

    async def between(*given):
        rows = await store(*given)
        offered.extend((await reader.search(text_query("words")))["chunk_id"].to_pylist())
        return rows

    monkeypatch.setattr(database._writer, "_parts", between)
    assert await database.rewrite(replace(parts, title="new", updated_at=None), seen=stored)
    assert [chunk.document_title for chunk in await reader.chunks_by_id(offered)] == ["new"]


@pytest.mark.parametrize("step", ["_parts", "_merge", "_exchange"])
async def test_a_cancelled_write_leaves_the_old_document(database, make, monkeypatch, step):
    (stored,) = await database.write([make("a.md", "old words")])
    reached = asyncio.Event()

    async def stuck(*given, **named):
        reached.set()
        await asyncio.sleep(60)

    with monkeypatch.context() as patch:
        patch.setattr(database._writer, step, stuck)
        late = make("a.md", "new words")
        writing = database.rewrite(late, seen=stored) if step == "_exchange" else database.write([late])
        task = asyncio.ensure_future(writing)
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await listed(database) == [stored]
    assert (await database.search(text_query("words"))).num_rows == 1
    assert [item.text for item in await database.items(stored.id)] == ["old words"]
    (again,) = await database.write([make("a.md", "newest words")])
    assert again.id == stored.id


async def test_a_job_is_written_down_for_whoever_goes_on(open_database):
    one, two = await open_database(), await open_database()
    assert await one.job() is None
    await one.set_job('{"it\'s": 1}')
    assert await two.job() == '{"it\'s": 1}'
    await two.set_job(None)
    assert await one.job() is None


async def test_what_is_staged_is_seen_by_nobody_until_it_is_adopted(open_database, make):
    database, reader = await open_database(), await open_database(mode=OpenMode.READ)
    stored = await database.write([make("a.md", "alpha", pictures={"p": b"1"}), make(None, "beta")])
    staged = await stage_all(database)
    assert (staged.identity, database.identity, reader.identity) == (OTHER, SAME, SAME)
    assert await listed(staged) == await listed(database) == await listed(reader) == stored
    await database.set_job("a job")
    assert await database.adopt()
    assert await listed(database) == await listed(reader) == stored
    assert (database.identity, reader.identity) == (OTHER, OTHER)
    assert await reader.picture(stored[0].id, "p") == b"1"
    assert (await reader.search(text_query("alpha"))).num_rows == 1
    found = await database.search(CandidateQuery(search_type="vector", depth=5, vector=np.ones(4, np.float32)))
    assert found["similarity"].to_pylist() == pytest.approx([1.0, 1.0])
    assert await states(database) == {0: "old", 1: "current"}
    assert await database.job() is None
    (written,) = await database.write([make("c.md", vectors=np.ones((1, 4)))])
    assert written in await listed(reader)


async def test_a_staged_database_that_was_begun_is_gone_on_with_and_one_of_another_embedding_is_not(
    open_database, make
):
    database, later = await open_database(), await open_database()
    (stored,) = await database.write([make("a.md")])
    await stage_all(database)
    assert await listed(await later.staged(OTHER)) == [stored]
    assert await listed(await later.staged(OTHER, anew=True)) == []
    third = EmbeddingIdentity(provider="test", model="third", dimension=6)
    assert (await later.staged(third)).identity == third
    assert await states(database) == {0: "current", 1: "old", 2: "old", 3: "staged"}
    await database.set_job(None)
    assert await states(database) == {0: "current", 1: "old", 2: "old", 3: "old"}


async def test_a_staged_database_that_another_process_gave_up_or_adopted_refuses_to_be_written(open_database, make):
    database, other = await open_database(), await open_database()
    await database.write([make("a.md")])
    staged, same = await stage_all(database), await other.staged(OTHER)
    assert await database.adopt()
    for late in (staged, same):
        await late.count_documents(filter=None)
        with pytest.raises(StorageError, match="the rebuild of database 'notes' was finished or given up by another"):
            await late.write([make("late.md", vectors=np.ones((1, 4)))])
    with pytest.raises(ConfigMismatchError, match="database 'notes' was rebuilt with another embedding"):
        await other.adopt()
    assert await database.count_documents(filter=None) == 1


async def test_adopting_is_refused_while_documents_differ_and_changes_nothing(open_database, make):
    database, other = await open_database(), await open_database()
    first, second = await database.write([make("a.md"), make("b.md")])
    staged = await stage_all(database)
    changes = (
        lambda: other.update(first.id, uri=None, title="new", metadata=None),
        lambda: other.write([make("c.md")]),
        lambda: other.delete(second.id),
    )
    for change in changes:
        await change()
        assert not await database.adopt()
        assert await states(database) == {0: "current", 1: "staged"}
        here = {document.id: document.updated_at for document in await listed(database)}
        for document in await listed(staged):
            if here.get(document.id) != document.updated_at:
                await staged.delete(document.id)
        there = {document.id for document in await listed(staged)}
        for missing in here.keys() - there:
            await staged.write([await converted(database, missing)])
    assert await database.adopt()
    assert {document.uri for document in await listed(other)} == {"a.md", "c.md"}


async def test_a_change_that_comes_while_adopting_is_not_lost(open_database, make, monkeypatch):
    database, other = await open_database(), await open_database()
    (stored,) = await database.write([make("a.md")])
    await stage_all(database)
    same = staging._same

    async def meanwhile(*given):
        looked = await same(*given)
        monkeypatch.setattr(staging, "_same", same)
        await other.update(stored.id, uri=None, title="meanwhile", metadata=None)
        return looked

    monkeypatch.setattr(staging, "_same", meanwhile)
    assert not await database.adopt()
    assert [document.title for document in await listed(database)] == ["meanwhile"]
    assert await states(database) == {0: "current", 1: "staged"}


async def test_writers_at_work_while_tables_change_lose_no_commit_that_was_acknowledged(open_database, make):
    database, reader = await open_database(), await open_database(mode=OpenMode.READ)
    acknowledged: dict[str, int] = {}
    seen: set[str] = set()
    begun, over = asyncio.Event(), asyncio.Event()

    async def write(name):
        writer = await open_database()
        while not over.is_set():
            number = acknowledged.get(name, 0) + 1
            (stored,) = await writer.write([make(f"{name}.md", f"{number}")])
            acknowledged[name] = number
            begun.set()
            if number % 3 == 0:
                assert await writer.update(stored.id, uri=None, title=f"title {number}", metadata=None)

    async def look():
        while not over.is_set():
            found = {document.uri for document in await listed(reader)}
            assert found >= seen
            seen.update(found)

    async def catch_up():
        here = {document.id: document.updated_at for document in await listed(database)}
        there = {document.id: document.updated_at for document in await listed(staged)}
        for outdated in [document for document, moment in there.items() if here.get(document) != moment]:
            await staged.delete(outdated)
        await staged.write(
            [await database.parts(document) for document in here if here[document] != there.get(document)]
        )

    tasks = [asyncio.ensure_future(work) for work in (write("a"), write("b"), write("c"), look())]
    await begun.wait()
    for _ in range(3):
        staged = await database.staged(SAME, anew=True)
        assert await database.adopt(catch_up=catch_up)
    over.set()
    await asyncio.gather(*tasks)
    left = await listed(database)
    assert {document.uri: int(document.content) for document in left} == {
        f"{name}.md": number for name, number in acknowledged.items()
    }
    assert await states(database) == {0: "old", 1: "old", 2: "old", 3: "current"}


async def test_catching_up_that_takes_too_long_is_broken_off_and_changes_nothing(open_database, make, monkeypatch):
    monkeypatch.setattr(staging, "CATCH_UP_SECONDS", 0.05)
    database = await open_database()
    (stored,) = await database.write([make("a.md")])
    await database.staged(OTHER)
    assert not await database.adopt(catch_up=lambda: asyncio.sleep(60))
    assert await states(database) == {0: "current", 1: "staged"}
    assert await listed(database) == [stored]


async def test_nothing_is_adopted_where_nothing_is_staged(database):
    with pytest.raises(StorageError, match="nothing is staged for database 'notes'"):
        await database.adopt()


async def test_a_database_open_for_reading_stages_nothing(open_database):
    await open_database()
    reader = await open_database(mode=OpenMode.READ)
    for operation in (reader.staged(OTHER), reader.adopt(), reader.set_job("x")):
        with pytest.raises(ReadOnlyError):
            await operation
    assert await reader.job() is None


async def test_a_writer_that_was_open_before_is_refused_for_the_embedding_and_its_write_is_not_made(
    open_database, make
):
    database, writer = await open_database(), await open_database()
    (stored,) = await database.write([make("a.md")])
    await stage_all(database)
    assert await database.adopt()
    for operation in (
        writer.write([make("late.md")]),
        writer.update(stored.id, uri=None, title="late", metadata=None),
        writer.delete(stored.id),
        writer.rewrite(make("a.md", "late"), seen=stored),
    ):
        with pytest.raises(ConfigMismatchError, match=r"other, 4 dimensions.*open the database again"):
            await operation
    assert await listed(database) == [stored]


async def test_a_writer_that_was_open_before_goes_on_in_the_new_tables_where_the_embedding_is_the_same(
    open_database, make
):
    database, writer = await open_database(), await open_database()
    stored, gone = await database.write([make("a.md"), make("b.md")])
    await stage_all(database, SAME)
    assert await database.adopt()
    (written,) = await writer.write([make("c.md")])
    renamed = await writer.update(stored.id, uri=None, title="renamed", metadata=None)
    assert await writer.delete(gone.id)
    assert await listed(database) == [renamed, written]


@pytest.mark.parametrize("operation", ["write", "update", "delete", "rewrite"])
async def test_a_commit_that_came_too_late_for_the_change_of_tables_is_made_again(
    open_database, make, monkeypatch, operation
):
    database, writer = await open_database(), await open_database()
    stored, _ = await database.write([make("a.md"), make("b.md")])
    await stage_all(database, SAME)
    follow = LiveTables.follow
    adopted: list[bool] = []

    async def late(live):
        if live is writer._live and writer._late:
            writer._late = False
        elif live is writer._live and not adopted:
            await replace_now(database, adopted)
        return await follow(live)

    writer._late = True
    monkeypatch.setattr(LiveTables, "follow", late)
    operations = {
        "write": lambda: writer.write([make("a.md", "late")]),
        "update": lambda: writer.update(stored.id, uri=None, title="late", metadata=None),
        "delete": lambda: writer.delete(stored.id),
        "rewrite": lambda: writer.rewrite(make("a.md", "late"), seen=stored),
    }
    assert await operations[operation]()
    assert adopted == [True]
    left = {document.uri: document.title or document.content for document in await listed(database)}
    assert left == {"b.md": "alpha"} | ({} if operation == "delete" else {"a.md": "late"})


async def replace_now(database, adopted):
    """Change generations as one that looked before the writer's commit would have."""
    settings, ref = database._live.tables.settings, database._live.ref
    async with sealed(settings, ref) as seal:
        (staged,) = [layout for layout in await layouts_now(settings, ref) if layout.state == "staged"]
        adopted.append(await switch(settings, ref, seal, staged))


async def test_a_commit_is_acknowledged_only_when_the_seal_is_gone(open_database, make):
    database, writer = await open_database(), await open_database()
    settings, ref = database._live.tables.settings, database._live.ref
    async with sealed(settings, ref):
        task = asyncio.ensure_future(writer.write([make("a.md")]))
        for _ in range(5):
            await asyncio.sleep(0.02)
            assert not task.done()
    (stored,) = await task
    assert await listed(database) == [stored]


async def test_readers_do_not_mind_a_seal(open_database, make):
    database, reader = await open_database(), await open_database(mode=OpenMode.READ)
    (stored,) = await database.write([make("a.md")])
    async with sealed(database._live.tables.settings, database._live.ref):
        assert await listed(reader) == [stored]
        assert await listed(await open_database(mode=OpenMode.READ)) == [stored]


async def test_a_seal_that_a_dead_process_left_is_broken_and_its_holder_changes_nothing_any_more(
    open_database, make, monkeypatch
):
    monkeypatch.setattr(generations, "SEAL_SECONDS", 0.0)
    database, writer = await open_database(), await open_database()
    await database.write([make("a.md")])
    await stage_all(database)
    settings, ref = database._live.tables.settings, database._live.ref
    async with sealed(settings, ref) as seal:
        (written,) = await writer.write([make("b.md")])
        (staged,) = [layout for layout in await layouts_now(settings, ref) if layout.state == "staged"]
        assert not await switch(settings, ref, seal, staged)
    assert await states(database) == {0: "current", 1: "staged"}
    assert written in await listed(database)


async def test_under_a_broken_seal_older_tables_do_not_come_back_either(open_database, make, monkeypatch):
    database, writer = await open_database(), await open_database()
    await stage_all(database, SAME)
    assert await database.adopt()
    monkeypatch.setattr(generations, "SEAL_SECONDS", 0.0)
    settings, ref = database._live.tables.settings, database._live.ref
    async with sealed(settings, ref) as seal:
        (written,) = await writer.write([make("b.md")])
        await change_layout(settings, "generation = 0", {"state": "staged"})
        (staged,) = [layout for layout in await layouts_now(settings, ref) if layout.state == "staged"]
        assert not await switch(settings, ref, seal, staged)
    assert await states(database) == {0: "staged", 1: "current"}
    assert await listed(await open_database()) == [written]


async def test_of_two_that_seal_at_once_one_waits_for_the_other(open_database):
    databases = [await open_database() for _ in range(3)]
    held = []

    async def hold(database):
        async with sealed(database._live.tables.settings, database._live.ref):
            held.append("on")
            await asyncio.sleep(0.02)
            held.append("off")

    await asyncio.gather(*map(hold, databases))
    assert held == ["on", "off"] * 3


async def test_a_settings_table_without_a_current_generation_is_no_database(database):
    settings, ref = database._live.tables.settings, database._live.ref
    await change_layout(settings, "generation = 0", {"state": "old"})
    with pytest.raises(MissingDatabaseError):
        await settled_layout(settings, ref)


async def test_a_staged_database_survives_its_tables_being_re_created_under_it(open_database, make):
    database = await open_database()
    (stored,) = await database.write([make("a.md")])
    staged = await stage_all(database)
    await staged._live._reopen()
    assert await listed(staged) == [stored]
    assert staged.identity == OTHER
    await staged.close()
    assert await listed(database) == [stored]
