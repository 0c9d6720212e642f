"""Opening, creating and closing databases."""

import asyncio
import shutil
import stat
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import anyio
import lancedb
import numpy as np
import pyarrow as pa
import pytest

from haiku.rag.config import AppConfig
from haiku.rag.contracts import CandidateQuery, OpenMode
from haiku.rag.errors import MigrationRequiredError, MissingDatabaseError, ReadOnlyError, StorageError, TagError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb.schema import SETTINGS
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage, create_storage
from haiku.rag.storage.lancedb.tables import is_there

pytestmark = pytest.mark.anyio

OPENING = """
import asyncio, sys
from haiku.rag.contracts import DatabaseRef, OpenMode
from haiku.rag.errors import MissingDatabaseError
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage

async def main():
    ticks = 0
    ref = DatabaseRef(name="n", location=sys.argv[1], storage="lancedb")
    opening = asyncio.ensure_future(LanceDBStorage(LanceDBSettings()).open(ref, mode=OpenMode.READ, identity=None))
    while not opening.done():
        ticks += 1
        await asyncio.sleep(0.01)
    assert isinstance(opening.exception(), MissingDatabaseError), opening.exception()
    assert ticks > 5, ticks

asyncio.run(main())
"""

HYBRID = CandidateQuery(search_type="hybrid", depth=3, text="alpha", vector=np.ones(8, np.float32), with_vectors=True)


@pytest.mark.parametrize("mode", [OpenMode.READ, OpenMode.WRITE])
@pytest.mark.parametrize("name", ["missing", "db", "db.lancedb", "~"])
async def test_a_missing_database_is_reported_and_not_created(open_database, tmp_path, monkeypatch, mode, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingDatabaseError, match="there is no database 'notes'") as caught:
        await open_database(tmp_path / "in" / name, mode=mode)
    assert str(tmp_path) not in str(caught.value)
    assert caught.value.source == "notes"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [OpenMode.READ, OpenMode.WRITE])
async def test_a_folder_without_a_database_is_missing_one_and_stays_as_it_is(open_database, tmp_path, tree, mode):
    (tmp_path / "folder" / "documents.lance").mkdir(parents=True)
    (tmp_path / "folder" / "note.txt").write_text("mine", encoding="utf-8")
    before = tree(tmp_path)
    with pytest.raises(MissingDatabaseError):
        await open_database(tmp_path / "folder", mode=mode)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("mode", list(OpenMode))
async def test_a_file_is_not_a_database(open_database, tmp_path, mode):
    (tmp_path / "file").write_text("text", encoding="utf-8")
    with pytest.raises(StorageError, match=r"'notes' cannot be opened: its location is a file, not a folder") as caught:
        await open_database(tmp_path / "file", mode=mode)
    assert str(tmp_path) not in str(caught.value)


async def test_a_location_that_the_caller_gave_is_named(open_database, tmp_path):
    with pytest.raises(MissingDatabaseError, match=f"at {tmp_path}/no"):
        await open_database(tmp_path / "no", mode=OpenMode.READ, given=True)
    (tmp_path / "file").write_text("text", encoding="utf-8")
    with pytest.raises(StorageError, match=f"{tmp_path}/file is a file"):
        await open_database(tmp_path / "file", mode=OpenMode.READ, given=True)


async def test_creating_makes_the_parents_and_records_the_embedding(open_database, tmp_path):
    identity = EmbeddingIdentity(provider="p", model="m", dimension=5, document_prefix="x: ")
    created = await open_database(tmp_path / "a" / "b" / "c", identity=identity)
    assert created.identity == identity
    reader = await open_database(tmp_path / "a" / "b" / "c", mode=OpenMode.READ, identity=None)
    assert reader.identity == identity


async def test_creating_an_existing_database_opens_it_as_it_is(open_database, make):
    first = await open_database()
    await first.write([make()])
    other = EmbeddingIdentity(provider="other", model="m", dimension=3)
    second = await open_database(identity=other)
    assert second.identity == first.identity
    assert await second.count_documents(filter=None) == 1


async def test_a_database_is_not_created_without_an_embedding(open_database, location):
    with pytest.raises(StorageError, match="cannot be created without an embedding"):
        await open_database(identity=None)
    with pytest.raises(MissingDatabaseError):
        await open_database(mode=OpenMode.READ)


async def test_a_creation_that_was_broken_off_is_no_database_and_can_be_completed(open_database, location, make):
    await (await open_database()).close()
    shutil.rmtree(location / "settings.lance")
    with pytest.raises(MissingDatabaseError):
        await open_database(mode=OpenMode.WRITE)
    database = await open_database()
    assert len(await database.write([make()])) == 1


@pytest.mark.parametrize("name", ["settings", "pictures", "documents"])
async def test_a_table_folder_that_a_full_disk_left_does_not_stand_in_the_way(open_database, location, make, name):
    for folder in ("_versions", "_transactions", "data"):
        (location / f"{name}.lance" / folder).mkdir(parents=True)
    (location / f"{name}.lance" / "data" / "half.lance").write_bytes(b"")
    with pytest.raises(MissingDatabaseError):
        await open_database(mode=OpenMode.READ)
    database = await open_database(mode=OpenMode.CREATE)
    await database.write([make(uri="u")])
    assert await database.count_documents(filter=None) == 1


async def test_a_full_disk_at_the_last_table_leaves_no_database_and_a_creation_later_completes_it(
    open_database, location, make
):
    database = await open_database(mode=OpenMode.CREATE)
    await database.close()
    shutil.rmtree(location / "settings.lance" / "_versions")
    with pytest.raises(MissingDatabaseError):
        await open_database(mode=OpenMode.READ)
    assert await (await open_database(mode=OpenMode.CREATE)).write([make(uri="u")])


async def test_a_table_that_is_broken_is_not_taken_for_one_that_is_not_there():
    class Broken:
        async def open_table(self, name):
            raise ValueError("corrupt manifest")

        async def list_tables(self, page_token=None):
            return SimpleNamespace(tables=[SETTINGS], page_token=None)

    with pytest.raises(ValueError, match="corrupt manifest"):
        await is_there(Broken(), SETTINGS)


async def test_a_database_without_its_settings_row_is_missing(open_database, location):
    await (await open_database()).close()
    connection = await lancedb.connect_async(location)
    await (await connection.open_table(SETTINGS)).delete("true")
    with pytest.raises(MissingDatabaseError):
        await open_database(mode=OpenMode.READ)


async def test_many_clients_can_create_one_database_together(open_database, make):
    clients = await asyncio.gather(*(open_database() for _ in range(6)))
    await clients[0].write([make()])
    assert [await client.count_documents(filter=None) for client in clients] == [1] * 6


async def test_a_table_that_cannot_be_created_fails_the_creation(open_database, monkeypatch):
    async def create_table(*_, **__):
        raise RuntimeError("No space left on device")

    monkeypatch.setattr(lancedb.AsyncConnection, "create_table", create_table)
    with pytest.raises(StorageError, match="database 'notes' could not be opened: the disk is full"):
        await open_database()


@pytest.mark.parametrize(("version", "advice"), [(0, "Migrate it"), (99, "Upgrade haiku-rag-lancedb")])
async def test_another_schema_version_wants_a_migration(open_database, location, version, advice):
    await (await open_database()).close()
    connection = await lancedb.connect_async(location)
    row = {"schema_version": version, "identity": "{}", "metric": "cosine"}
    await connection.create_table(SETTINGS, data=pa.Table.from_pylist([row]), mode="overwrite")
    with pytest.raises(MigrationRequiredError, match=f"'notes' has schema version {version}.*{advice}"):
        await open_database(mode=OpenMode.READ)


@pytest.mark.parametrize(
    "name",
    [
        "db",
        "db.lancedb",
        "with space",
        "per%20cent%",
        "ha#sh",
        "que?stion",
        "日本語 ünï",
        "it's",
        "a&b=c",
        "~",
        "plus+",
    ],
)
async def test_any_folder_name_is_taken_as_it_is(open_database, tmp_path, make, name):
    database = await open_database(tmp_path / name)
    (stored,) = await database.write([make()])
    await database.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    reader = await open_database(tmp_path / name, mode=OpenMode.READ)
    assert (await reader.search(HYBRID))["document_id"].to_pylist() == [stored.id]


async def read_everything(database):
    (document,) = await database.list_documents(limit=None, offset=0, filter="uri LIKE '%'", include_content=True)
    assert await database.document_by_id(document.id) == document
    assert await database.document_by_uri("a.md") == document
    assert await database.document_by_title("T") == document
    assert await database.items(document.id)
    assert await database.picture(document.id, "p") == b"x"
    found = await database.search(HYBRID)
    assert await database.chunks_by_id(found["chunk_id"].to_pylist())
    assert (await database.info()).documents == 1
    assert database.identity


@pytest.mark.parametrize("mode", [OpenMode.READ, OpenMode.WRITE])
async def test_reading_creates_and_changes_no_file(open_database, location, make, tree, mode):
    writer = await open_database()
    await writer.write([make("a.md", title="T", pictures={"p": b"x"})])
    before_close = await open_database(mode=mode)
    snapshot = tree(location)
    await read_everything(before_close)
    await before_close.close()
    assert tree(location) == snapshot
    await writer.close()
    snapshot = tree(location)
    reader = await open_database(mode=mode)
    await read_everything(reader)
    await reader.close()
    assert tree(location) == snapshot


async def test_a_read_only_folder_can_be_read(open_database, location, make):
    writer = await open_database()
    await writer.write([make("a.md", title="T", pictures={"p": b"x"})])
    await writer.close()
    paths = [location, *location.rglob("*")]
    for path in paths:
        path.chmod(path.stat().st_mode & ~stat.S_IWUSR)
    try:
        reader = await open_database(mode=OpenMode.READ)
        await read_everything(reader)
        await reader.close()
    finally:
        for path in paths:
            path.chmod(path.stat().st_mode | stat.S_IWUSR)


async def test_closing_twice_is_safe_and_reads_after_it_are_errors(open_database, make):
    database = await open_database()
    await database.write([make()])
    await database.close()
    await database.close()
    with pytest.raises(StorageError, match="database 'notes' could not be"):
        await database.items(
            (await database.list_documents(limit=1, offset=0, filter=None, include_content=False))[0].id
        )


async def test_a_storage_can_be_closed_twice_and_open_again(open_database, storage):
    await open_database()
    await storage.close()
    await storage.close()
    await open_database()


async def test_cancelling_an_open_leaves_the_engine_usable(open_database, storage):
    with anyio.move_on_after(0):
        await open_database()
    assert await (await open_database()).count_documents(filter=None) == 0


async def test_a_tag_that_does_not_exist_is_an_error_that_names_it(open_database):
    await open_database()
    with pytest.raises(TagError, match="database 'notes' has no tag 'v1'"):
        await open_database(mode=OpenMode.READ, tag="v1")


@pytest.mark.parametrize("mode", [OpenMode.WRITE, OpenMode.CREATE])
async def test_a_tagged_database_is_not_opened_for_writing(open_database, mode):
    await open_database()
    with pytest.raises(TagError, match="'notes' is placed at tag 'v1' and can only be read"):
        await open_database(mode=mode, tag="v1")


async def test_a_tag_shows_the_database_as_it_was(open_database, location, make):
    writer = await open_database()
    (stored,) = await writer.write([make("a.md", "alpha", title="Then")])
    connection = await lancedb.connect_async(location)
    for name in ("documents", "chunks", "items", "pictures"):
        table = await connection.open_table(name)
        await table.tags.create("v1", await table.version())
    reader = await open_database(mode=OpenMode.READ, tag="v1")
    await writer.write([make("a.md", "beta", title="Now"), make("b.md")])
    for _ in range(2):
        assert [
            document.title
            for document in await reader.list_documents(limit=None, offset=0, filter=None, include_content=True)
        ] == ["Then"]
        assert (await reader.search(HYBRID))["document_id"].to_pylist() == [stored.id]
    with pytest.raises(ReadOnlyError):
        await reader.delete(stored.id)


async def test_the_factory_takes_the_configuration_of_its_section(tmp_path):
    config = AppConfig.model_validate(
        {"lancedb": {"databases": {"a": str(tmp_path)}, "read_consistency_interval_seconds": 2}}
    )
    assert create_storage(config)._settings.read_consistency_interval_seconds == 2
    assert create_storage(AppConfig())._settings == LanceDBSettings()


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "often"])
def test_an_interval_is_a_number_of_seconds(value):
    with pytest.raises(ValueError, match="read_consistency_interval_seconds"):
        LanceDBSettings.model_validate({"read_consistency_interval_seconds": value})


def test_no_secret_shows_in_the_settings():
    settings = LanceDBSettings.model_validate({"api_key": "hidden-1", "storage_options": {"secret": "hidden-2"}})
    assert "hidden" not in repr(settings)


async def test_a_cloud_location_is_reached_with_key_and_region(open_database, monkeypatch):
    given: dict[str, Any] = {}

    async def connect_async(location, **options):
        given.update(options, location=location)
        raise RuntimeError(f"connection to {location} refused")

    monkeypatch.setattr(lancedb, "connect_async", connect_async)
    settings = LanceDBSettings.model_validate({"api_key": "k", "region": "eu", "storage_options": {"timeout": "5s"}})
    with pytest.raises(StorageError, match="database 'notes' could not be opened: the store did not answer") as caught:
        await open_database("db://company", mode=OpenMode.READ, engine=LanceDBStorage(settings))
    assert (given["location"], given["api_key"], given["region"]) == ("db://company", "k", "eu")
    assert given["storage_options"] == {"timeout": "5s"}
    assert caught.value.__context__ is None
    assert "company" not in str(caught.value)
    with pytest.raises(StorageError, match="connection to db://company refused"):
        await open_database("db://company", mode=OpenMode.READ, engine=LanceDBStorage(LanceDBSettings()), given=True)


def test_neither_discovery_nor_the_engine_imports_lancedb(worker_environment):
    code = (
        "import sys, haiku.rag.storage.lancedb.plugin as p;"
        "assert not {'lancedb', 'pyarrow', 'numpy', 'sqlglot', 'pydantic'} & set(sys.modules);"
        "(s,) = p.haiku_rag_register_storage(); (c,) = p.haiku_rag_register_config_section();"
        "from importlib import import_module;"
        "[getattr(import_module(m), o) for m, o in (r.factory.split(':') for r in (s, c))];"
        "assert not {'lancedb', 'sqlglot', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], env=worker_environment, check=True)


def test_importing_lancedb_does_not_block_the_loop(worker_environment, tmp_path):
    script = tmp_path / "opening.py"
    script.write_text(OPENING, encoding="utf-8")
    (tmp_path / "empty").mkdir()
    subprocess.run([sys.executable, str(script), str(tmp_path / "empty")], env=worker_environment, check=True)
    assert list((tmp_path / "empty").iterdir()) == []
