"""Checks: what is wrong with the rows of a database is found, and put right where that is safe."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import anyio
import numpy as np
import pyarrow as pa
import pytest

from haiku.rag.contracts import DatabaseRef, OpenMode
from haiku.rag.errors import ReadOnlyError, TagError
from haiku.rag.models.upkeep import UpkeepReport, UpkeepStep
from haiku.rag.storage.lancedb import checks, garbage, repairs, survey, vector_index
from haiku.rag.storage.lancedb.failures import engine_failure, is_conflict
from haiku.rag.storage.lancedb.generations import change_layout
from haiku.rag.storage.lancedb.layout import Layout, layout_table

pytestmark = pytest.mark.anyio
ROW = "generation = 0"


@pytest.fixture
def found():
    """Gives the findings by their checks."""

    async def check(database, **options):
        findings = await database.check(**{"fix": False, **options})
        by_check = {finding.check: finding for finding in findings}
        assert len(by_check) == len(findings), findings
        return by_check

    return check


@pytest.fixture
def tables(database):
    """The tables, to be spoilt."""
    return database._live.tables


def refers(document):
    """The document, its passages referring to its items, and the last of them to a picture."""
    chunks = [
        chunk.model_copy(update={"doc_item_refs": [item.ref], "labels": [item.label]})
        for chunk, item in zip(document.chunks, document.items, strict=True)
    ]
    last = chunks[-1].model_copy(update={"content": " ", "labels": ["picture"]})
    return replace(document, chunks=[*chunks[:-1], last], pictures={document.items[-1].ref: b"image"})


def wrong(findings):
    """The checks that are not well, without the indexes that a database this young has not got yet."""
    young = {"lookup_indexes", "index_coverage", "text_indexes"}
    return {check for check, finding in findings.items() if finding.status != "ok"} - young


async def first_row(table, **changes):
    """One of the table's rows, changed."""
    rows = (await table.query().limit(1).to_arrow()).to_pylist()
    return pa.Table.from_pylist([{**rows[0], **changes}], schema=await table.schema())


async def test_a_sound_database_has_nothing_wrong_and_is_not_touched(open_database, location, make, found, tree):
    writer = await open_database()
    await writer.write([refers(make("a.md", "alpha", "beta", "gamma"))])
    await writer.write([make("b.md")])
    await writer.close()
    before = tree(location)
    reader = await open_database(mode=OpenMode.READ)
    findings = await found(reader)
    assert [check for check, finding in findings.items() if finding.status != "ok"] == []
    await reader.close()
    assert tree(location) == before
    assert "4 altogether" in findings["chunk_counts"].message
    assert "ended well" in findings["upkeep"].message
    assert not any(str(location) in finding.message for finding in findings.values())


async def test_an_empty_database_has_nothing_wrong(database, found):
    findings = await found(database)
    assert [check for check, finding in findings.items() if finding.status != "ok"] == []
    assert findings["upkeep"].message == "No upkeep has been recorded yet."


async def test_checking_only_reads_unless_told_otherwise(open_database, database, make):
    await database.write([make()])
    reader = await open_database(mode=OpenMode.READ)
    for options in ({"fix": True}, {"fix": False, "probe": True}):
        with pytest.raises(ReadOnlyError):
            await reader.check(**options)


async def test_a_state_of_the_past_is_not_checked(open_database, database, make):
    await database.write([make()])
    await database.create_tag("then")
    tagged = await open_database(mode=OpenMode.READ, tag="then")
    with pytest.raises(TagError):
        await tagged.check(fix=False)


@pytest.mark.parametrize("part", ["documents", "chunks", "items", "pictures"])
async def test_a_missing_data_file_is_found_though_rows_can_be_counted(open_database, location, make, found, part):
    writer = await open_database()
    await writer.write([refers(make("a.md", "alpha", "beta"))])
    await writer.close()
    checked = await open_database()
    assert await checked._live.tables.chunks.count_rows() == 2
    for file in (location / f"{part}.lance" / "data").iterdir():
        file.unlink()
    findings = await found(checked)
    said = findings["tables" if part != "documents" else "rows"]
    assert said.status == "failed"
    assert part in said.message or part == "documents"
    assert not any(str(location) in finding.message for finding in findings.values())


async def test_passages_that_are_stored_twice_are_stored_once_again(database, tables, make, found):
    (stored,) = await database.write([refers(make("a.md", "alpha", "beta"))])
    await tables.chunks.add(await tables.chunks.query().to_arrow())
    findings = await found(database)
    assert wrong(findings) == {"duplicate_chunks", "chunk_counts"}
    assert findings["duplicate_chunks"].samples == [stored.id]
    fixed = await found(database, fix=True)
    assert wrong(fixed) == set()
    assert fixed["duplicate_chunks"].fixed
    assert fixed["duplicate_chunks"].message.startswith("Put right: ")
    again = await database.document_by_id(stored.id)
    assert again is not None
    assert (again.updated_at, again.chunk_count) == (stored.updated_at, 2)
    assert await database.picture(stored.id, "#/1") == b"image"


async def test_a_document_that_is_deleted_meanwhile_is_not_written_again(database, make):
    (stored,) = await database.write([make()])
    await database.delete(stored.id)
    await repairs.store_once(database._writer, database.parts, stored.id)
    assert await database.count_documents(filter=None) == 0


async def test_of_a_document_that_is_stored_several_times_the_newest_row_is_kept(database, tables, make, found):
    (stored,) = await database.write([make("a.md", "alpha")])
    await database.write([make("b.md", "beta")])
    older = stored.updated_at - timedelta(days=1)
    row = (await tables.documents.query().where("uri = 'a.md'").to_arrow()).to_pylist()[0]
    twice = [row, {**row, "revision": f"{0:020d}-old", "updated_at": older, "title": "old"}]
    await tables.documents.add(pa.Table.from_pylist(twice, schema=await tables.documents.schema()))
    findings = await found(database)
    assert findings["duplicate_documents"].samples == [stored.id]
    assert findings["duplicate_documents"].status == "failed"
    fixed = await found(database, fix=True)
    assert fixed["duplicate_documents"].fixed
    documents = await database.list_documents(limit=None, offset=0, filter=None, include_content=True)
    assert [(document.uri, document.title) for document in documents] == [("a.md", None), ("b.md", None)]


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"key": "uri:other", "uri": "other"}, "duplicate_ids"),
        ({"id": "another"}, "duplicate_keys"),
        ({"id": "another", "key": "uri:wrong"}, "duplicate_uris"),
        ({"id": "another", "key": "uri:wrong", "uri": "right"}, "document_keys"),
    ],
)
async def test_documents_that_share_what_is_one_documents_own_are_found_and_left(database, make, found, changes, check):
    tables = database._live.tables
    await database.write([make("a.md", "alpha")])
    await tables.documents.add(await first_row(tables.documents, **changes))
    for fix in (False, True):
        finding = (await found(database, fix=fix))[check]
        assert (finding.status, finding.fixable, finding.fixed) == ("failed", False, False)
    assert await tables.documents.count_rows() == 2


async def test_a_document_that_was_stored_without_a_uri_keeps_its_key(database, make, found):
    (stored,) = await database.write([make(None, "alpha")])
    await database.update(stored.id, uri="a.md", title=None, metadata=None)
    assert wrong(await found(database)) == set()


async def test_missing_passages_are_found(database, tables, make, found):
    stored, _ = await database.write([make("a.md", "alpha", "beta"), make("b.md", "gamma")])
    await tables.chunks.delete("content = 'beta'")
    findings = await found(database)
    assert wrong(findings) == {"chunk_counts"}
    assert findings["chunk_counts"].samples == [stored.id]
    assert findings["chunk_counts"].remedy.startswith("haiku-rag rebuild")


async def test_texts_without_passages_are_found(database, make, found):
    nothing = {"vectors": np.empty((0, 8), np.float32)}
    documents = [make(f"{number}.md", **nothing, content=content) for number, content in enumerate("abcdefg ")]
    stored = await database.write([replace(document, chunks=[], items=[]) for document in documents])
    finding = (await found(database))["documents_without_chunks"]
    assert finding.message.endswith(": 7.")
    assert set(finding.samples) <= {document.id for document in stored[:7]}
    assert len(finding.samples) == 5


async def test_vectors_that_say_nothing_are_found(database, tables, make, found):
    await database.write([make("a.md", "alpha", "beta", vectors=[[0.0] * 8, [1.0] * 8])])
    findings = await found(database)
    assert wrong(findings) == {"vectors_zero"}
    infinite = await first_row(tables.chunks, id="odd", vector=[float("inf")] + [1.0] * 7)
    await tables.chunks.add(infinite)
    findings = await found(database)
    assert findings["vectors_finite"].samples == ["odd"]
    assert findings["vectors_finite"].status == "failed"


async def test_references_to_what_is_not_there_are_found(database, tables, make, found):
    (stored,) = await database.write([refers(make("a.md", "alpha", "beta"))])
    await tables.items.delete("ref = '#/0'")
    await tables.pictures.delete("true")
    findings = await found(database)
    assert wrong(findings) == {"item_references", "picture_references"}
    assert findings["item_references"].samples == findings["picture_references"].samples == [stored.id]


async def test_passages_with_unreadable_details_are_found(database, tables, make, found):
    await database.write([make("a.md", "alpha")])
    for text in ("{", "[]", json.dumps({"doc_item_refs": None, "labels": []})):
        await tables.chunks.update({"details": text})
        findings = await found(database)
        assert wrong(findings) == {"chunk_details"}


async def test_ids_of_passages_that_two_documents_share_are_found(database, make, found):
    first, second = make("a.md", "alpha"), make("b.md", "beta")
    shared = [second.chunks[0].model_copy(update={"id": first.chunks[0].id})]
    await database.write([first, replace(second, chunks=shared)])
    findings = await found(database)
    assert wrong(findings) == {"shared_chunk_ids"}
    assert findings["shared_chunk_ids"].samples == [first.chunks[0].id]


async def test_rows_that_no_document_names_are_found_and_removed(open_database, make, found, monkeypatch):
    monkeypatch.setattr(garbage, "SHORTEST_GRACE_SECONDS", -1.0)
    monkeypatch.setattr(garbage, "IN_FLIGHT_SECONDS", -1.0)
    database = await open_database()
    await database.write([make("a.md", "alpha")])
    await database.write([make("a.md", "beta")])
    findings = await found(database)
    assert wrong(findings) == {"orphans"}
    assert "1 rows of chunks" in findings["orphans"].message
    fixed = await found(database, fix=True)
    assert fixed["orphans"].fixed
    assert wrong(fixed) == set()


async def test_missing_indexes_are_found_and_built(open_database, location, make, found, monkeypatch):
    monkeypatch.setattr(vector_index, "WORTHWHILE_BYTES", 1)
    database = await open_database()
    tables = database._live.tables
    texts = [f"text {number}" for number in range(300)]
    await database.write([make("a.md", *texts)])
    await tables.chunks.drop_index("text_idx")
    findings = await found(database)
    assert findings["text_indexes"].status == "warning"
    assert "text_idx" in findings["text_indexes"].message
    assert findings["vector_index"].status == "warning"
    fixed = await found(database, fix=True)
    assert {check for check, finding in fixed.items() if finding.status != "ok"} == set()
    assert fixed["text_indexes"].fixed
    assert fixed["vector_index"].fixed
    assert "vector_idx" in {index.name for index in await tables.chunks.list_indices()}


async def test_many_small_fragments_are_found(database, tables, make, found, monkeypatch):
    monkeypatch.setattr(checks, "MANY_FRAGMENTS", 3)
    for number in range(4):
        await database.write([make(f"{number}.md", "alpha")])
    findings = await found(database)
    assert wrong(findings) == {"fragments"}
    assert wrong(await found(database, fix=True)) == set()


async def test_a_failed_upkeep_is_told(database, tables, make, found):
    failed = UpkeepStep(name="vector index", status="failed", detail="the disk is full")
    report = UpkeepReport(finished_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC), steps=[failed])
    await database.write([make()])
    await change_layout(tables.settings, ROW, {"upkeep": report.model_dump_json()})
    finding = (await found(database))["upkeep"]
    assert finding.message == "Steps of the last upkeep failed (2026-01-02 03:04): vector index (the disk is full)."
    assert (await found(database, fix=True))["upkeep"].fixed


@pytest.mark.parametrize(
    ("job", "remedy"),
    [
        (json.dumps({"mode": "embed-only"}), "haiku-rag rebuild --embed-only"),
        ("rebuild", "haiku-rag rebuild"),
        ("not json", "haiku-rag rebuild"),
    ],
)
async def test_an_unfinished_rebuild_is_told(database, make, found, job, remedy):
    tables = database._live.tables
    await database.write([make()])
    await change_layout(tables.settings, ROW, {"job": job})
    findings = await found(database)
    assert wrong(findings) == {"rebuild"}
    assert findings["rebuild"].remedy == remedy


async def test_a_tag_that_is_not_complete_is_told(database, tables, make, found):
    await database.write([make()])
    await database.create_tag("whole")
    await tables.chunks.tags.create("half", 1)
    findings = await found(database)
    assert wrong(findings) == {"tags"}
    assert findings["tags"].samples == ["half"]


async def test_settings_that_contradict_each_other_are_told(database, tables, make, found):
    await database.write([make()])
    await tables.settings.update({"metric": "l2"})
    findings = await found(database)
    assert wrong(findings) == {"settings"}
    assert "l2" in findings["settings"].message
    other = Layout.numbered(0, "current", identity=tables.identity, language=None)
    await tables.settings.update({"metric": "cosine"})
    await tables.settings.add(layout_table(replace(other, generation=1)))
    assert (await found(database))["settings"].message.endswith("not 2.")


async def test_columns_that_are_missing_are_told(database, tables, make, found):
    await database.write([make()])
    await tables.items.drop_columns(["box"])
    findings = await found(database)
    assert wrong(findings) == {"schema"}
    assert "box of items" in findings["schema"].message
    await tables.chunks.drop_columns(["details"])
    findings = await found(database)
    assert wrong(findings) == {"schema", "tables"}


async def test_vectors_of_another_dimension_than_the_recorded_one_are_told(database, tables, make, found):
    await database.write([make()])
    identity = json.loads((await tables.settings.query().to_arrow())["identity"][0].as_py())
    await tables.settings.update({"identity": json.dumps({**identity, "dimension": 16})})
    assert {"vector_dimension", "schema"} <= wrong(await found(database))


async def test_what_could_not_be_put_right_is_told(database, location, make, found):
    tables = database._live.tables
    await database.write([refers(make("a.md", "alpha", "beta"))])
    await tables.chunks.add(await tables.chunks.query().to_arrow())
    for file in (location / "pictures.lance" / "data").iterdir():
        file.unlink()
    fixed = await found(database, fix=True)
    assert {"tables", "duplicate_chunks", "fix"} <= wrong(fixed)
    assert fixed["fix"].status == "failed"
    assert not fixed["duplicate_chunks"].fixed


async def test_a_folder_that_may_not_be_written_is_told(database, make, found, monkeypatch):
    await database.write([make()])
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the tests may run as root, who may write anywhere
    assert wrong(await found(database)) == {"writable"}


async def test_a_check_that_takes_too_long_is_told_and_the_others_are_made(database, make, found, monkeypatch):
    await database.write([make()])
    monkeypatch.setattr(checks, "CHECK_SECONDS", 0.0)
    findings = await found(database)
    assert {"settings", "tags", "plan"} <= wrong(findings)
    assert findings["tags"].message == "This could not be checked: the store did not answer."
    assert findings["chunk_counts"].status == "ok"


async def test_a_table_that_gives_no_more_rows_is_given_up(database, make, found, monkeypatch):
    await database.write([make()])

    async def silent(batches):
        with anyio.fail_after(0.0):
            await anyio.sleep_forever()

    monkeypatch.setattr(survey, "_next", silent)
    said = (await found(database))["tables"]
    assert said.status == "failed"
    assert "'chunks' (the store did not answer)" in said.message


async def test_a_check_can_be_cancelled_and_leaves_a_database_that_answers(database, make, found):
    await database.write([make(f"{number}.md", "alpha") for number in range(20)])
    with anyio.move_on_after(0.005) as scope:
        while True:
            await database.check(fix=False)
    assert scope.cancelled_caught
    assert wrong(await found(database)) == set()
    assert await database.count_documents(filter=None) == 20


async def test_steps_that_cannot_be_planned_are_told(database, location, tables, make, found):
    await database.write([make()])
    for file in (location / "items.lance" / "data").iterdir():
        file.unlink()
    findings = await found(database)
    assert findings["orphans"].message == "Not known: old revisions (a part of it is missing)."


async def test_indexes_whose_files_are_lost_are_found_and_built_again(open_database, make, found, location):
    database = await open_database()
    await database.write([make(f"{number}.md", f"alpha {number}") for number in range(30)])
    await database.create_index()
    for file in (location / "chunks.lance" / "_indices").rglob("*"):
        if file.is_file():
            file.unlink()
    await database.close()
    database = await open_database()
    broken = (await found(database))["indexes"]
    assert (broken.status, broken.fixable, broken.remedy) == ("failed", True, "haiku-rag create-index")
    assert broken.message.startswith("These indexes cannot be read: ")
    assert {"text_idx of chunks", "id_idx of chunks"} <= set(broken.message[:-1].partition(": ")[2].split(", "))
    assert (await found(database, fix=True))["indexes"].fixed
    assert (await found(database))["indexes"].status == "ok"


@pytest.mark.parametrize(
    ("text", "reason", "advice"),
    [
        ("failed to fill whole buffer", "a part of it is damaged", "See what is lost with: haiku-rag doctor."),
        ("Object at location /x not found", "a part of it is missing", "See what is lost with: haiku-rag doctor."),
        ("No space left on device", "the disk is full", "Make room, then try again."),
        ("connection refused", "the store did not answer", "Check that it can be reached, then try again."),
    ],
)
def test_a_failure_says_what_to_do_next(text, reason, advice):
    ref = DatabaseRef(name="notes", location="/secret/notes.lancedb", storage="lancedb")
    failure = engine_failure(ref, "read", OSError(f"{text}, /root/src/reader.rs:899:28"))
    assert str(failure) == f"database 'notes' could not be read: {reason}. {advice}"
    given = engine_failure(replace(ref, given=True), "read", OSError(f"{text}, /root/src/reader.rs:899:28"))
    assert str(given) == f"database 'notes' could not be read: {reason} ({text}). {advice}"


def test_the_words_of_a_path_are_no_reason():
    ref = DatabaseRef(name="notes", location="/data/conflict timeout/notes.lancedb", storage="lancedb")
    error = OSError("LanceError(IO): something odd: /data/conflict/permission.lancedb/no space.lance")
    assert not is_conflict(error)
    assert "the storage engine reported a OSError" in str(engine_failure(ref, "read", error))
