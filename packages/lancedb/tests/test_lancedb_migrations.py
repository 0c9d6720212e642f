"""Databases of every schema version: opened, migrated, and migrated by a process that is killed."""

import asyncio
import json
import signal
import subprocess
import sys
import zipfile
from datetime import timedelta
from pathlib import Path

import lancedb
import numpy as np
import pytest

from haiku.rag.contracts import CandidateQuery, DatabaseRef, OpenMode
from haiku.rag.errors import MigrationRequiredError, MissingDatabaseError, StorageError, TagError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb.migrations import steps, to_2
from haiku.rag.storage.lancedb.schema import SCHEMA_VERSION
from haiku.rag.storage.lancedb.storage import LanceDBStorage

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).with_name("fixtures")
WORKER = Path(__file__).with_name("lancedb_killed_worker.py")
OLD = range(1, SCHEMA_VERSION)
IDENTITY = EmbeddingIdentity(provider="test", model="seeded", dimension=8, document_prefix="doc: ")
NOW = {
    "café.md": ["Die Straße ist naß", "C++ and C# in snake_case"],
    "東京.pdf": ["東京都の天気は晴れです"],
    "changed.md": ["after", "after that"],
    "late.md": ["no index covers this"],
}
FIRST = {
    "café.md": NOW["café.md"],
    "東京.pdf": NOW["東京.pdf"],
    "gone.md": ["gone"],
    "changed.md": ["before"],
}


@pytest.fixture
def unpacked(tmp_path):
    """The fixture database of a version."""

    def unpack(version: int) -> DatabaseRef:
        with zipfile.ZipFile(FIXTURES / f"schema-{version}.zip") as archive:
            archive.extractall(tmp_path)
        return DatabaseRef(name="notes", location=str(tmp_path / "db"), storage="lancedb")

    return unpack


async def tables(ref):
    connection = await lancedb.connect_async(ref.location)
    return set((await connection.list_tables()).tables)


async def holds(database, expected):
    """Whether every way of reading finds just these documents, whole."""
    documents = await database.list_documents(limit=None, offset=0, filter=None, include_content=True)
    assert {document.uri: document.content.split("\n") for document in documents} == expected
    query = CandidateQuery(search_type="vector", depth=1000, vector=np.ones(8, np.float32), with_vectors=True)
    found = await database.search(query)
    chunks = await database.chunks_by_id(found["chunk_id"].to_pylist())
    assert sorted((chunk.document_uri, chunk.order, chunk.content) for chunk in chunks) == sorted(
        (uri, order, text) for uri, texts in expected.items() for order, text in enumerate(texts)
    )
    assert all(chunk.headings == ["Überschrift"] and chunk.page_numbers == [chunk.order + 1] for chunk in chunks)
    for document in documents:
        texts = expected[document.uri]
        assert document.title == f"Title of {document.uri}"
        assert document.content_hash == f"hash of {document.uri}"
        assert document.metadata["größe"] == document.chunk_count == len(texts)
        assert [item.text for item in await database.items(document.id)] == texts
        vectors = np.random.default_rng(sum(document.uri.encode())).normal(size=(len(texts), 8)).astype(np.float32)
        by_chunk = dict(zip(found["chunk_id"].to_pylist(), found["vector"].to_pylist(), strict=True))
        for order, vector in enumerate(vectors):
            np.testing.assert_array_equal(np.array(by_chunk[f"{document.uri}/{order}"], np.float32), vector)
    japanese = next(document for document in documents if document.uri == "東京.pdf")
    assert await database.picture(japanese.id, "#/0") == b"picture"
    assert await database.picture(japanese.id, "page/1") == b"page"
    for words, uri in (("STRASSE", "café.md"), ("天気", "東京.pdf"), ("c++", "café.md")):
        hits = await database.search(CandidateQuery(search_type="fts", depth=10, text=words))
        ids = {document.id for document in documents if document.uri == uri}
        assert set(hits["document_id"].to_pylist()) == ids, words


async def opened(storage, ref, mode=OpenMode.READ, tag=None):
    fields = {"name": ref.name, "location": ref.location, "storage": ref.storage, "tag": tag}
    return await storage.open(DatabaseRef(**fields), mode=mode, identity=None)


async def test_every_version_has_a_fixture_and_every_old_one_a_step():
    assert [step.version for step in steps.STEPS] == [version + 1 for version in OLD]
    for version in (*OLD, SCHEMA_VERSION):
        assert (FIXTURES / f"schema-{version}.zip").stat().st_size < 200_000


async def test_a_database_of_the_current_version_opens_and_has_nothing_to_migrate(storage, unpacked):
    ref = unpacked(SCHEMA_VERSION)
    assert await storage.pending_migrations(ref) == []
    before = await tables(ref)
    assert await storage.migrate(ref) == []
    assert await tables(ref) == before
    database = await opened(storage, ref)
    await holds(database, NOW)
    await database.close()


@pytest.mark.parametrize("version", OLD)
@pytest.mark.parametrize("mode", OpenMode)
async def test_an_old_database_is_not_opened_but_says_what_to_do(storage, unpacked, version, mode, tree):
    ref = unpacked(version)
    snapshot = tree(Path(ref.location))
    with pytest.raises(MigrationRequiredError, match=f"has schema version {version}.*Migrate it with: haiku-rag migr"):
        await opened(storage, ref, mode)
    pending = await storage.pending_migrations(ref)
    assert [step.version for step in pending] == list(range(version + 1, SCHEMA_VERSION + 1))
    assert all(step.summary.endswith(".") for step in pending)
    assert tree(Path(ref.location)) == snapshot


@pytest.mark.parametrize("version", OLD)
async def test_a_migrated_database_holds_what_it_held_and_a_second_migration_does_nothing(storage, unpacked, version):
    ref = unpacked(version)
    taken = await storage.migrate(ref)
    assert [step.version for step in taken] == list(range(version + 1, SCHEMA_VERSION + 1))
    after = await tables(ref)
    assert "chunks" not in after
    assert len(after) == 5
    assert (await storage.pending_migrations(ref), await storage.migrate(ref)) == ([], [])
    assert await tables(ref) == after
    database = await opened(storage, ref, OpenMode.WRITE)
    assert database.identity == IDENTITY
    await holds(database, NOW)
    assert (await database.info()).schema_version == SCHEMA_VERSION
    await database.close()


@pytest.mark.parametrize("version", OLD)
async def test_tags_are_carried_over(storage, unpacked, version):
    ref = unpacked(version)
    await storage.migrate(ref)
    then = await opened(storage, ref, tag="first")
    await holds(then, FIRST)
    await then.close()
    database = await opened(storage, ref, OpenMode.WRITE)
    assert [(tag.name, tag.complete) for tag in await database.tags()] == [("first", True)]
    await database.restore_tag("first")
    await holds(database, FIRST)
    await database.close()


async def test_a_tag_that_is_not_whole_stays_so(storage, unpacked):
    ref = unpacked(1)
    connection = await lancedb.connect_async(ref.location)
    await (await connection.open_table("documents")).tags.create("half", 1)
    await storage.migrate(ref)
    database = await opened(storage, ref)
    assert [(tag.name, tag.complete) for tag in await database.tags()] == [("first", True), ("half", False)]
    await database.close()


async def test_a_migrated_database_is_written_to_like_any_other(storage, unpacked, make):
    ref = unpacked(1)
    await storage.migrate(ref)
    database = await opened(storage, ref, OpenMode.WRITE)
    await database.write([make("more.md", "F# is more")])
    hits = await database.search(CandidateQuery(search_type="fts", depth=10, text="f#"))
    assert hits.num_rows == 1
    assert await database.count_documents(filter=None) == 5
    await database.close()


async def test_a_database_newer_than_the_package_is_refused(storage, database, open_database, location):
    connection = await lancedb.connect_async(location)
    settings = await connection.open_table("settings")
    await settings.update({"schema_version": "99"})
    ref = DatabaseRef(name="notes", location=str(location), storage="lancedb")
    for operation in (storage.pending_migrations, storage.migrate):
        with pytest.raises(MigrationRequiredError, match=r"schema version 99.*Upgrade haiku-rag-lancedb\."):
            await operation(ref)
    with pytest.raises(MigrationRequiredError, match="Upgrade"):
        await open_database()


async def test_what_is_no_database_is_not_migrated(storage, tmp_path):
    ref = DatabaseRef(name="notes", location=str(tmp_path / "none"), storage="lancedb")
    for operation in (storage.pending_migrations, storage.migrate):
        with pytest.raises(MissingDatabaseError):
            await operation(ref)
    assert not (tmp_path / "none").exists()
    (tmp_path / "none").mkdir()
    with pytest.raises(MissingDatabaseError):
        await storage.migrate(ref)
    connection = await lancedb.connect_async(ref.location)
    await connection.create_table("settings", schema=to_2.SETTINGS_SCHEMA)
    with pytest.raises(MissingDatabaseError):
        await storage.migrate(ref)


async def test_a_tagged_entry_is_not_migrated(storage, unpacked):
    ref = unpacked(1)
    tagged = DatabaseRef(name="notes", location=ref.location, storage="lancedb", tag="first")
    with pytest.raises(TagError, match="'notes' is placed at tag 'first' and can only be read"):
        await storage.migrate(tagged)
    assert len(await storage.pending_migrations(tagged)) == 1


async def test_a_document_written_while_chunks_are_copied_is_copied_too(storage, unpacked, monkeypatch):
    ref = unpacked(1)
    rewritten = to_2._append
    connection = await lancedb.connect_async(ref.location)

    async def meanwhile(filled, held, schema):
        await rewritten(filled, held, schema)
        monkeypatch.setattr(to_2, "_append", rewritten)
        documents, chunks = await connection.open_table("documents"), await connection.open_table("chunks")
        row = (await documents.query().where("uri = 'late.md'").to_arrow()).to_pylist()[0]
        moved = await chunks.query().where(f"revision = '{row['revision']}'").to_arrow()
        column = moved.schema.get_field_index("revision")
        await chunks.add(moved.set_column(column, moved.schema.field(column), [["9" * 20 + "-late"]]))
        await documents.update({"revision": "9" * 20 + "-late"}, where="uri = 'late.md'")

    monkeypatch.setattr(to_2, "_append", meanwhile)
    await storage.migrate(ref)
    database = await opened(storage, ref)
    chunk = await database.chunks_by_id(["late.md/0"])
    assert [found.content for found in chunk] == NOW["late.md"]
    await database.close()


async def test_many_chunks_are_copied_in_bounded_batches(storage, unpacked, monkeypatch):
    monkeypatch.setattr(to_2, "BATCH_BYTES", 1)
    monkeypatch.setattr(to_2, "ROWS_AT_ONCE", 1)
    ref = unpacked(1)
    await storage.migrate(ref)
    database = await opened(storage, ref)
    await holds(database, NOW)
    await database.close()


async def test_two_that_migrate_at_once_leave_one_migrated_database(storage, unpacked):
    ref = unpacked(1)
    results = await asyncio.gather(*(storage.migrate(ref) for _ in range(3)), return_exceptions=True)
    assert any(not isinstance(result, Exception) for result in results)
    # Who is late may find the old chunks gone while it reads them.
    assert all(isinstance(result, list | StorageError) for result in results)
    await storage.migrate(ref)
    database = await opened(storage, ref)
    await holds(database, NOW)
    await database.close()


async def test_who_comes_second_throws_its_own_table_away(storage, unpacked, monkeypatch):
    ref = unpacked(1)
    switching = to_2._switch

    async def late(connection, chunks):
        monkeypatch.setattr(to_2, "_switch", switching)
        await LanceDBStorage(storage._settings).migrate(ref)
        return await switching(connection, chunks)

    monkeypatch.setattr(to_2, "_switch", late)
    await storage.migrate(ref)
    assert len(await tables(ref)) == 5
    database = await opened(storage, ref)
    await holds(database, NOW)
    await database.close()


@pytest.mark.parametrize("first", [True, False])
async def test_who_is_refused_by_the_engine_looks_whether_another_was_first(storage, unpacked, monkeypatch, first):
    ref = unpacked(1)
    make_table = lancedb.AsyncConnection.create_table

    async def refused(self, name, *arguments, **named):
        if "mode" not in named:
            return await make_table(self, name, *arguments, **named)
        monkeypatch.undo()
        if first:
            await LanceDBStorage(storage._settings).migrate(ref)
        raise RuntimeError("commit conflict for version 2")

    monkeypatch.setattr(lancedb.AsyncConnection, "create_table", refused)
    if first:
        await storage.migrate(ref)
    else:
        with pytest.raises(StorageError, match="other processes kept writing"):
            await storage.migrate(ref)
    assert len(await tables(ref)) == 5
    assert len(await storage.pending_migrations(ref)) == (0 if first else 1)


async def test_tables_that_other_runs_are_dropping_stop_no_sweep(storage, unpacked, monkeypatch):
    ref = unpacked(1)
    (Path(ref.location) / "chunks.v2-0123456789ab.lance").mkdir()
    drop = lancedb.AsyncConnection.drop_table

    async def both(self, name, **named):
        await drop(self, name, **named)
        raise RuntimeError("not found")

    monkeypatch.setattr(lancedb.AsyncConnection, "drop_table", both)
    await storage.migrate(ref)
    assert "chunks" not in await tables(ref)

    async def broken(*_, **__):
        raise RuntimeError("permission denied")

    connection = await lancedb.connect_async(ref.location)
    await connection.create_table("chunks", schema=to_2.chunks_schema(8))
    monkeypatch.setattr(lancedb.AsyncConnection, "drop_table", broken)
    with pytest.raises(StorageError, match="permission was refused"):
        await storage.migrate(ref)


async def test_a_failure_leaves_the_old_database_and_no_new_table(storage, unpacked, monkeypatch):
    async def broken(*_):
        raise OSError("no space left on device")

    ref = unpacked(1)
    before = await tables(ref)
    monkeypatch.setattr(to_2, "_switch", broken)
    with pytest.raises(StorageError, match="database 'notes' could not be migrated: the disk is full"):
        await storage.migrate(ref)
    assert await tables(ref) == before
    assert len(await storage.pending_migrations(ref)) == 1


async def test_only_long_dead_tables_of_other_runs_are_dropped(storage, unpacked, monkeypatch):
    ref = unpacked(1)
    connection = await lancedb.connect_async(ref.location)
    other = "chunks.v2-0123456789ab"
    await connection.create_table(other, schema=to_2.chunks_schema(8))
    await storage.migrate(ref)
    assert other in await tables(ref)
    monkeypatch.setattr(to_2, "ABANDONED_AFTER", timedelta(0))
    await storage.migrate(ref)
    assert other not in await tables(ref)
    assert len(await tables(ref)) == 5


async def test_a_step_on_the_way_to_the_newest_version_builds_no_indexes(storage, unpacked, monkeypatch):
    ref = unpacked(1)
    monkeypatch.setattr(steps, "SCHEMA_VERSION", 3)
    await storage.migrate(ref)
    connection = await lancedb.connect_async(ref.location)
    settings = (await (await connection.open_table("settings")).query().to_arrow()).to_pylist()
    chunks = await connection.open_table(json.loads(settings[0]["tables"])["chunks"])
    assert list(await chunks.list_indices()) == []


POINTS = [
    "table-made:1",
    "chunks-copied:1",
    "chunks-copied:3",
    "chunks-appended:1",
    "indexed:1",
    "tag-carried:1",
    "settings-written:1",
    "swept:1",
]


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_any_point_the_database_is_of_one_version_and_is_migrated_again(
    storage, unpacked, worker_environment, point
):
    ref = unpacked(1)
    command = [sys.executable, str(WORKER), ref.location, "migrate", "", point]
    process = await asyncio.create_subprocess_exec(
        *command, env=worker_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await process.communicate()
    assert (process.returncode, err) == (-signal.SIGKILL, b""), out
    switched = point in ("settings-written:1", "swept:1")
    assert len(await storage.pending_migrations(ref)) == (0 if switched else 1)
    if switched:
        database = await opened(storage, ref)
        await holds(database, NOW)
        await database.close()
    else:
        with pytest.raises(MigrationRequiredError, match="Migrate it"):
            await opened(storage, ref)
    assert len(await storage.migrate(ref)) == (0 if switched else 1)
    database = await opened(storage, ref, OpenMode.WRITE)
    await holds(database, NOW)
    assert "chunks" not in await tables(ref)
    await database.close()
