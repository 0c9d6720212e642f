"""The probe: whether an object store keeps the first of two objects of one name."""

import time

import anyio
import pytest

from haiku.rag.contracts import OpenMode
from haiku.rag.storage.lancedb import probe
from haiku.rag.storage.lancedb.rows import new_revision
from haiku.rag.storage.lancedb.tables import table_names

pytestmark = [pytest.mark.anyio, pytest.mark.s3]
LOCATION = "s3://bucket/probed"


async def put_if_absent(database, **options):
    """The one finding that is about the store; and there is one."""
    findings = await database.check(fix=False, **options)
    (finding,) = [finding for finding in findings if finding.check == "put_if_absent"]
    return finding


async def test_a_store_that_honours_conditional_writes_passes_and_no_scratch_is_left(open_database, s3_engine, bucket):
    database = await open_database(LOCATION, engine=s3_engine)
    before = bucket.objects()
    assert (await put_if_absent(database, probe=True)).status == "ok"
    assert bucket.objects() == before


async def test_a_store_that_ignores_conditional_writes_fails(open_database, engine_of, careless_server, make):
    database = await open_database(LOCATION, engine=engine_of(careless_server.endpoint))
    await database.write([make()])
    finding = await put_if_absent(database, probe=True)
    assert finding.status == "failed"
    assert "overwrite" in finding.message
    assert not any("probe-" in key for key in careless_server.bucket.objects())


async def test_without_being_asked_nothing_is_probed(open_database, s3_engine, bucket):
    await open_database(LOCATION, engine=s3_engine)
    before = bucket.objects()
    reader = await open_database(LOCATION, engine=s3_engine, mode=OpenMode.READ)
    finding = await put_if_absent(reader)
    assert finding.status == "ok"
    assert "--probe" in finding.message
    assert bucket.objects() == before


async def test_a_local_folder_is_not_probed(database):
    findings = await database.check(fix=False, probe=True)
    assert not any(finding.check == "put_if_absent" for finding in findings)


async def test_scratch_of_a_probe_that_was_killed_is_removed_and_that_of_another_one_is_left(open_database, s3_engine):
    database = await open_database(LOCATION, engine=s3_engine)
    connection = database._connection
    old = probe.PREFIX + new_revision(time.time_ns() - 2 * probe.LEFT_BEHIND_NS)
    recent = probe.PREFIX + new_revision(time.time_ns())
    for name in (old, recent):
        await connection.create_table(name, schema=probe.SCRATCH)
    assert (await put_if_absent(database, probe=True)).status == "ok"
    names = await table_names(connection)
    assert old not in names
    assert recent in names


async def test_a_probe_that_is_cancelled_cleans_up(open_database, s3_engine, bucket, monkeypatch):
    database = await open_database(LOCATION, engine=s3_engine)
    before = bucket.objects()
    with anyio.CancelScope() as scope:

        async def cancelling(connection, name):
            scope.cancel()
            return await dropped(connection, name)

        dropped = probe._drop
        monkeypatch.setattr(probe, "_drop", cancelling)
        await database.check(fix=False, probe=True)
    assert scope.cancelled_caught
    assert bucket.objects() == before


async def test_a_store_that_cannot_be_written_is_a_warning_without_its_location(open_database, s3_engine, s3_server):
    database = await open_database(LOCATION, engine=s3_engine)
    left = probe.PREFIX + new_revision(time.time_ns() - 2 * probe.LEFT_BEHIND_NS)
    await database._connection.create_table(left, schema=probe.SCRATCH)
    with s3_server.refusing_writes():
        finding = await put_if_absent(database, probe=True)
    assert (finding.status, finding.remedy) == ("warning", "haiku-rag doctor --probe")
    assert "permission was refused" in finding.message
    assert "bucket" not in finding.message
