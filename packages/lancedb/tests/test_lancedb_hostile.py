"""Databases that have lost files, or whose settings say nonsense: a clear error, and nothing that makes it worse."""

import shutil

import lancedb
import pytest

from haiku.rag.contracts import DatabaseRef, OpenMode
from haiku.rag.errors import MissingDatabaseError, StorageError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb.schema import DOCUMENTS, SETTINGS
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage
from haiku.rag.storage.lancedb.tables import create_tables

pytestmark = pytest.mark.anyio

IDENTITY = EmbeddingIdentity(provider="test", model="seeded", dimension=8, document_prefix="doc: ")
LOST = "the settings of database 'notes' are missing or damaged"
NONSENSE = {
    "no JSON": {"identity": "{"},
    "no embedding": {"identity": "{}"},
    "nothing": {"identity": "null"},
    "a dimension in words": {"identity": '{"provider": "p", "model": "m", "dimension": "many"}'},
    "a dimension of nothing": {"identity": '{"provider": "p", "model": "m", "dimension": 0}'},
    "a list of tables": {"tables": "[]"},
    "no tables": {"tables": "{}"},
    "one table for all": {"tables": '{"documents": "items", "chunks": "items", "items": "items", "pictures": "items"}'},
    "no state that there is": {"state": "elsewhere"},
    "no current generation": {"state": "old"},
}


@pytest.fixture
async def stored(database, make, location):
    """Where a database with one document lies that nobody has open."""
    await database.write([make("a.md", "alpha", "beta")])
    await database.close()
    return location


async def changed(location, changes):
    """Change the settings behind the engine's back."""
    connection = await lancedb.connect_async(location)
    settings = await connection.open_table(SETTINGS)
    await (settings.update(changes) if changes else settings.delete("true"))
    settings.close()
    connection.close()


@pytest.mark.parametrize("mode", list(OpenMode))
@pytest.mark.parametrize("part", ["", "_versions"])
async def test_settings_that_are_lost_are_told_and_never_made_anew(stored, open_database, tree, mode, part):
    shutil.rmtree(stored / f"{SETTINGS}.lance" / part)
    before = tree(stored)
    with pytest.raises(StorageError, match=LOST) as caught:
        await open_database(mode=mode)
    assert str(stored) not in str(caught.value)
    assert tree(stored) == before


@pytest.mark.parametrize("lost", [True, False], ids=["without settings", "with empty ones"])
async def test_a_migration_tells_that_the_settings_are_lost(stored, storage, lost):
    if lost:
        shutil.rmtree(stored / f"{SETTINGS}.lance")
    else:
        await changed(stored, None)
    ref = DatabaseRef(name="notes", location=str(stored), storage="lancedb")
    for migrating in (storage.pending_migrations, storage.migrate):
        with pytest.raises(StorageError, match=LOST):
            await migrating(ref)


@pytest.mark.parametrize("mode", list(OpenMode))
@pytest.mark.parametrize("changes", [*NONSENSE.values(), None], ids=[*NONSENSE, "no row"])
async def test_settings_that_say_nonsense_are_told_and_left(stored, open_database, tree, mode, changes):
    await changed(stored, changes)
    before = tree(stored)
    with pytest.raises(StorageError, match=LOST):
        await open_database(mode=mode)
    assert tree(stored) == before


async def test_settings_of_something_else_are_no_database(stored, open_database):
    connection = await lancedb.connect_async(stored)
    await connection.create_table(SETTINGS, [{"colour": "blue"}], mode="overwrite")
    connection.close()
    with pytest.raises(StorageError, match=LOST):
        await open_database(mode=OpenMode.READ)


async def test_an_outcome_of_upkeep_that_is_garbled_keeps_nobody_out(stored, open_database):
    await changed(stored, {"upkeep": "garbled"})
    info = await (await open_database(mode=OpenMode.READ)).info()
    assert (info.documents, info.upkeep) == (1, None)


async def test_a_creation_that_was_broken_off_before_its_settings_is_gone_on_with(stored, open_database, make):
    database = await open_database()
    await database.delete((await database.document_by_uri("a.md")).id)
    await database.vacuum(retention_seconds=0, dry_run=False)
    await database.close()
    for name in (SETTINGS, "chunks", "items"):
        shutil.rmtree(stored / f"{name}.lance")
    with pytest.raises(MissingDatabaseError):
        await open_database(mode=OpenMode.WRITE)
    database = await open_database()
    await database.write([make("b.md", "gamma")])
    assert await database.count_documents(filter=None) == 1


async def test_who_creates_second_leaves_what_the_first_has_written(stored):
    connection = await lancedb.connect_async(stored)
    settings = await connection.open_table(SETTINGS)
    version = await settings.version()
    ref = DatabaseRef(name="notes", location=str(stored), storage="lancedb")
    await create_tables(connection, ref, IDENTITY, language=None)
    await settings.checkout_latest()
    assert await settings.version() == version
    connection.close()


async def test_tags_are_listed_and_read_where_the_newest_documents_are_lost(database, make, location, open_database):
    await database.write([make("a.md", "alpha")])
    await database.create_tag("good")
    kept = set((location / f"{DOCUMENTS}.lance" / "data").iterdir())
    await database.write([make("b.md", "beta")])
    await database.close()
    for file in set((location / f"{DOCUMENTS}.lance" / "data").iterdir()) - kept:
        file.unlink()
    damaged = await open_database(mode=OpenMode.READ)
    with pytest.raises(StorageError):
        await damaged.count_documents(filter=None)
    assert [tag.name for tag in await damaged.tags()] == ["good"]
    then = await open_database(mode=OpenMode.READ, tag="good")
    assert await then.count_documents(filter=None) == 1


async def test_restoring_a_tag_brings_back_chunks_that_an_unchanged_document_has_lost(database, make, location):
    written = await database.write([make("a.md", "alpha", "beta"), make("b.md", "gamma"), make("c.md", "delta")])
    await database.create_tag("good")
    connection = await lancedb.connect_async(location)
    chunks = await connection.open_table("chunks")
    await chunks.delete(f"document_id != '{written[2].id}' AND position = 0")
    connection.close()
    await database.restore_tag("good")
    parts = [await database.parts(document.id) for document in written]
    assert [[chunk.content for chunk in part.chunks] for part in parts] == [["alpha", "beta"], ["gamma"], ["delta"]]
    assert await database.count_documents(filter=None) == 3


async def test_restoring_a_tag_over_chunks_that_cannot_be_read_does_not_claim_to_have_done_it(
    database, make, location, open_database
):
    await database.write([make("a.md", "alpha")])
    await database.create_tag("good")
    await database.close()
    for file in (location / "chunks.lance" / "data").iterdir():
        file.unlink()
    # Another engine: that of the test has the files in its cache.
    damaged = await open_database(mode=OpenMode.WRITE, engine=LanceDBStorage(LanceDBSettings()))
    with pytest.raises(StorageError, match="could not be restored"):
        await damaged.restore_tag("good")
