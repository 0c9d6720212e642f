"""Vacuum: what it does step by step, what it leaves alone, and how much memory it holds."""

import asyncio
import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lancedb
import pytest

from haiku.rag.config.models import StorageConfig
from haiku.rag.contracts import CandidateQuery, OpenMode
from haiku.rag.errors import ReadOnlyError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb import compaction, retired, upkeep
from haiku.rag.storage.lancedb.compaction import Shape, shape_of
from haiku.rag.storage.lancedb.generations import change_layout
from haiku.rag.storage.lancedb.layout import Layout, layout_table
from haiku.rag.storage.lancedb.tables import create_parts, open_generation, table_names

pytestmark = pytest.mark.anyio

IDENTITY = EmbeddingIdentity(provider="test", model="seeded", dimension=8)
PAGES = 8
WORKER = Path(__file__).parent / "lancedb_vacuum_worker.py"


@pytest.fixture
async def worn(open_database, make, monkeypatch):
    """A database with a dozen small commits and no upkeep yet."""
    monkeypatch.setattr(upkeep, "COMMITS_BETWEEN", 10**9)
    monkeypatch.setattr(upkeep, "SECONDS_BETWEEN", 10**9)
    database = await open_database()
    for number in range(12):
        await database.write([make(f"{number}.md", f"alpha {number}", pictures={"p": bytes([number])})])
    return database


def outcome(report):
    return {step.name: (step.status, step.detail) for step in report.steps}


def no_retention(database, monkeypatch):
    monkeypatch.setattr(database._upkeep._vacuum, "retention", lambda _: timedelta(milliseconds=2))


async def fragments(database, part):
    return (await shape_of(getattr(database._live.tables, part))).fragments


async def test_a_vacuum_reports_each_step_and_leaves_nothing_to_do(worn):
    assert await fragments(worn, "chunks") == 12
    done = outcome(await worn.vacuum(retention_seconds=None, dry_run=False))
    assert list(done) == [
        "old revisions",
        "old generations",
        "text indexes",
        "lookup indexes",
        "vector index",
        "index catch-up",
        *(f"compaction of {part}" for part in ("documents", "chunks", "items", "pictures", "settings")),
        *(f"old versions of {part}" for part in ("documents", "chunks", "items", "pictures", "settings")),
    ]
    assert done["lookup indexes"][1] == "id of chunks, revision of chunks, revision of items, revision of pictures"
    assert sorted(done["index catch-up"][1].split(", ")) == [
        "11 rows for identifiers_idx of chunks",
        "11 rows for text_idx of chunks",
    ]
    assert done["compaction of chunks"][1].startswith("12 fragments, ")
    for part in ("documents", "chunks", "items", "pictures"):
        assert await fragments(worn, part) == 1
    again = outcome(await worn.vacuum(retention_seconds=None, dry_run=False))
    assert {status for status, _ in again.values()} == {"nothing to do"}
    assert await worn.count_documents(filter=None) == 12
    found = await worn.search(CandidateQuery(search_type="fts", depth=50, text="alpha"))
    assert found.num_rows == 12


async def test_a_dry_run_changes_nothing_and_says_what_would_be_done(worn, location, tree, monkeypatch):
    no_retention(worn, monkeypatch)
    await worn.update((await worn.document_by_uri("1.md")).id, uri=None, title="new", metadata=None)
    before = tree(location)
    report = await worn.vacuum(retention_seconds=0, dry_run=True)
    assert tree(location) == before
    planned = outcome(report)
    assert report.dry_run
    assert {name for name, (status, _) in planned.items() if status == "planned"} >= {
        "lookup indexes",
        "index catch-up",
        "compaction of pictures",
        "old versions of documents",
    }
    assert {status for status, _ in planned.values()} == {"planned", "nothing to do"}
    assert "bytes" in planned["old versions of documents"][1]


async def test_old_versions_go_and_tagged_ones_stay(worn, open_database, make, monkeypatch):
    monkeypatch.setattr(compaction, "BEFORE_TAGS", timedelta(seconds=1))
    await asyncio.sleep(1.5)
    await worn.write([make("new.md", "alpha new")])
    await worn.create_tag("before")
    tagged = await worn._live.tables.chunks.version()
    await worn.write([make("0.md", "beta")])
    no_retention(worn, monkeypatch)
    planned = outcome(await worn.vacuum(retention_seconds=0, dry_run=True))
    assert planned["old versions of chunks"][1].startswith(f"{tagged - 1} versions, ")
    done = outcome(await worn.vacuum(retention_seconds=0, dry_run=False))
    assert done["old versions of chunks"][0] == "done"
    assert {entry["version"] for entry in await worn._live.tables.chunks.list_versions()} >= {tagged}
    assert (await worn._live.tables.chunks.list_versions())[0]["version"] > 1
    reader = await open_database(mode=OpenMode.READ, tag="before")
    query = CandidateQuery(search_type="fts", depth=50, text="alpha")
    assert (await reader.search(query)).num_rows == 13
    assert (await worn.search(query)).num_rows == 12


async def test_old_versions_are_kept_for_as_long_as_readers_and_writers_need(worn):
    versions = len(await worn._live.tables.documents.list_versions())
    done = outcome(await worn.vacuum(retention_seconds=0, dry_run=False))
    assert done["old versions of documents"] == ("nothing to do", "")
    assert len(await worn._live.tables.documents.list_versions()) >= versions


async def test_a_reader_that_was_open_before_goes_on(worn, open_database, monkeypatch):
    reader = await open_database(mode=OpenMode.READ)
    query = CandidateQuery(search_type="fts", depth=50, text="alpha")
    assert (await reader.search(query)).num_rows == 12
    no_retention(worn, monkeypatch)
    await worn.vacuum(retention_seconds=0, dry_run=False)
    found = await reader.search(query)
    assert found.num_rows == 12
    assert len(await reader.chunks_by_id(found["chunk_id"].to_pylist())) == 12
    first = await reader.document_by_uri("3.md")
    assert await reader.picture(first.id, "p") == bytes([3])


async def test_a_database_open_for_reading_is_not_vacuumed(worn, open_database):
    reader = await open_database(mode=OpenMode.READ)
    with pytest.raises(ReadOnlyError):
        await reader.vacuum(retention_seconds=None, dry_run=True)


async def add_generation(database, number, state, *, age):
    """Another set of tables, in a state since so long."""
    layout = Layout.numbered(number, state, identity=IDENTITY, language=None)
    settings = database._live.tables.settings
    await create_parts(database._connection, layout)
    await settings.add(layout_table(layout))
    await change_layout(settings, f"generation = {number}", {"changed_at": datetime.now(UTC) - age})
    return layout


async def test_generations_in_use_no_more_are_dropped(worn, monkeypatch):
    for number, state, age in (
        (1, "old", timedelta(days=2)),
        (2, "old", timedelta(minutes=1)),
        (3, "staged", timedelta(days=30)),
        (4, "old", timedelta(days=2)),
        (5, "staged", timedelta(days=30)),
    ):
        await add_generation(worn, number, state, age=age)
    tagged = await worn._connection.open_table("documents-4")
    await tagged.tags.create("kept", await tagged.version())
    planned = outcome(await worn.vacuum(retention_seconds=None, dry_run=True))
    assert planned["old generations"] == ("planned", "generation 1"), "what was just filled may be gone on with"
    monkeypatch.setattr(retired, "ABANDONED", timedelta(microseconds=1))
    await worn._connection.drop_table("documents-3")
    await worn._connection.drop_table("documents-5")
    report = outcome(await worn.vacuum(retention_seconds=None, dry_run=False))
    assert report["old generations"] == ("done", "generation 1, generation 3, generation 5")
    names = await table_names(worn._connection)
    assert {name.partition("-")[2] for name in names} == {"", "2", "4"}
    rows = (await worn._live.tables.settings.query().select(["generation"]).to_arrow())["generation"].to_pylist()
    assert sorted(rows) == [0, 2, 4]


async def test_an_old_generation_without_its_documents_is_no_obstacle(worn):
    await add_generation(worn, 1, "old", age=timedelta(days=2))
    await worn._connection.drop_table("documents-1")
    report = outcome(await worn.vacuum(retention_seconds=None, dry_run=False))
    assert report["old generations"] == ("done", "generation 1")


async def test_a_staged_generation_that_has_been_adopted_meanwhile_is_not_dropped(worn):
    layout = await add_generation(worn, 1, "staged", age=timedelta(days=30))
    await change_layout(worn._live.tables.settings, "generation = 1", {"state": "old"})
    await worn._upkeep._vacuum._retired.drop(worn._live.tables, layout)
    assert "documents-1" in await table_names(worn._connection)


async def test_a_staged_database_leaves_other_generations_alone(worn):
    staged = await add_generation(worn, 1, "staged", age=timedelta(days=1))
    await add_generation(worn, 2, "old", age=timedelta(days=2))
    tables = await open_generation(worn._connection, worn._live.tables.settings, staged)
    assert await worn._upkeep._vacuum._retired.droppable(tables, timedelta()) == []
    tables.close_parts()


def shape(**given):
    usual = {"bytes": 10**9, "rows": 1000, "fragments": 2, "fresh": 0, "deleted": 0, "is_worn": False}
    return Shape(**{**usual, **given})


@pytest.mark.parametrize(
    ("given", "worth_it"),
    [
        ({"fresh": 249}, False),
        ({"fresh": 250}, True),
        ({"fresh": 200, "deleted": 50}, True),
        ({"bytes": 100}, True),
    ],
)
async def test_a_large_table_is_written_anew_in_proportion_to_what_is_new(given, worth_it):
    assert shape(**given).is_worth_it(100) is worth_it


async def test_a_shape_tells_what_is_new_and_what_is_deleted(worn):
    chunks = worn._live.tables.chunks
    for _ in range(2):  # rows that the text indexes cover stay apart from others at first
        await chunks.optimize()
    await chunks.add(await chunks.query().limit(3).to_arrow())
    await chunks.delete("content IN ('alpha 5', 'alpha 6')")
    found = await shape_of(chunks)
    assert (found.rows, found.fragments, found.fresh, found.deleted, found.is_worn) == (13, 2, 3, 2, True)
    assert not found.is_compact()
    empty = await shape_of(await worn._connection.create_table("empty", schema=await chunks.schema()))
    assert (empty.rows, empty.fragments, empty.fresh, empty.is_worn) == (0, 0, 0, False)


async def test_old_versions_of_a_large_table_wait_until_compaction_is_in_proportion(worn, monkeypatch):
    no_retention(worn, monkeypatch)
    await worn.vacuum(retention_seconds=0, dry_run=False)
    chunks = worn._live.tables.chunks
    await chunks.add(await chunks.query().limit(1).to_arrow())
    before = await chunks.list_versions()
    small = StorageConfig.model_construct(compaction_target_bytes=1)
    monkeypatch.setattr(worn._upkeep, "_storage", small)
    done = outcome(await worn.vacuum(retention_seconds=0, dry_run=False))
    assert done["compaction of chunks"] == done["old versions of chunks"] == ("nothing to do", "")
    assert len(await chunks.list_versions()) >= len(before)


async def test_compaction_follows_deletions(worn, monkeypatch):
    await worn.vacuum(retention_seconds=None, dry_run=False)
    for number in range(4):
        await worn.delete((await worn.document_by_uri(f"{number}.md")).id)
    monkeypatch.setattr(worn._upkeep._garbage, "_grace", -1.0)
    done = outcome(await worn.vacuum(retention_seconds=None, dry_run=False))
    assert done["old revisions"] == ("done", "4 rows of chunks, 4 rows of items, 4 rows of pictures")
    assert done["compaction of pictures"][1].startswith("1 fragments, ")
    found = await shape_of(worn._live.tables.pictures)
    assert (found.rows, found.deleted) == (8, 0)


def run_worker(environment, *arguments, timeout=600):
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=timeout)
    return json.loads(found.stdout.splitlines()[-1])


def test_compacting_page_images_holds_little_in_memory(location, worker_environment):
    for total in (64, 96):  # the second time it reads what the first has put together
        run_worker(worker_environment, "fill", location, total)
        figures = run_worker(worker_environment, "vacuum", location, 8 << 20)
        assert (figures["fragments"], figures["rows"]) == (1, total * PAGES // 2)
        assert figures["grown_bytes"] < 3 * (64 << 20), figures


@pytest.mark.stress
def test_compacting_two_gigabytes_of_page_images_stays_below_one(location, worker_environment):
    for total in (2048, 2560, 3072):
        run_worker(worker_environment, "fill", location, total, timeout=3600)
        figures = run_worker(worker_environment, "vacuum", location, 256 << 20, timeout=3600)
        assert figures["fragments"] == 1
        assert figures["peak_bytes"] < 10**9
        run_worker(worker_environment, "delete", location, 4)


def test_a_vacuum_killed_at_any_point_loses_nothing(location, worker_environment):
    run_worker(worker_environment, "fill", location, 4)
    before = run_worker(worker_environment, "check", location)
    choose = random.Random(7)
    for _ in range(int(os.environ.get("HAIKU_RAG_STRESS", "1"))):
        command = [sys.executable, str(WORKER), "vacuum", str(location), str(4 << 20)]
        with subprocess.Popen(command, env=worker_environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            try:
                process.wait(choose.uniform(0.0, 0.4))
            except subprocess.TimeoutExpired:
                process.kill()
        assert run_worker(worker_environment, "check", location) == before
        before = run_worker(worker_environment, "churn", location)
    figures = run_worker(worker_environment, "vacuum", location, 4 << 20)
    assert figures["failed"] == []
    assert run_worker(worker_environment, "check", location) == before


async def test_two_vacuums_at_once_harm_nothing(worn, open_database, location):
    other = await open_database()
    reports = await asyncio.gather(
        worn.vacuum(retention_seconds=None, dry_run=False), other.vacuum(retention_seconds=None, dry_run=False)
    )
    assert [report.failed for report in reports] == [[], []]
    connection = await lancedb.connect_async(location)
    for part in ("documents", "chunks", "items", "pictures"):
        assert await (await connection.open_table(part)).count_rows() == 12


async def test_a_vacuum_of_another_process_shows_in_info(worn, open_database):
    reader = await open_database(mode=OpenMode.READ)
    report = await worn.vacuum(retention_seconds=None, dry_run=False)
    assert (await reader.info()).upkeep == report


async def test_the_size_that_would_be_freed_is_left_out_where_it_cannot_be_known(worn, monkeypatch):
    no_retention(worn, monkeypatch)
    monkeypatch.setattr(worn._live, "ref", replace(worn._live.ref, location="s3://bucket/notes.lancedb"))
    planned = outcome(await worn.vacuum(retention_seconds=0, dry_run=True))
    assert planned["old versions of chunks"][1].endswith(" versions")


async def test_a_service_looks_after_files_and_indexes_itself(worn, monkeypatch):
    monkeypatch.setattr(worn._live, "ref", replace(worn._live.ref, location="db://notes"))
    report = await worn.vacuum(retention_seconds=None, dry_run=True)
    assert [step.name for step in report.steps] == ["old revisions", "old generations"]
