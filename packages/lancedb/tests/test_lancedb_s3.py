"""A database on object storage, against a server in this process."""

import asyncio
import logging
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from haiku.rag.contracts import CandidateQuery, OpenMode
from haiku.rag.errors import HaikuRagError, MissingDatabaseError, ReadOnlyError, StorageError
from haiku.rag.storage.lancedb.settings import LanceDBSettings

pytestmark = [pytest.mark.anyio, pytest.mark.s3]
LOCATION = "s3://bucket/some folder/notes"
WORKER = Path(__file__).with_name("lancedb_s3_worker.py")
SECRETS = ("AKIATHEKEYID", "the-secret-key")


def hybrid(text):
    return CandidateQuery(search_type="hybrid", depth=5, text=text, vector=np.ones(8, np.float32))


async def run_worker(environment, *arguments):
    """Run the worker to its end, which has to come in time; gives its output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(WORKER),
        *map(str, arguments),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, errors.decode()
    return output.decode() + errors.decode()


@pytest.fixture
def silent():
    """The endpoint of a server that accepts and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def shown(caplog, capfd):
    """Gives what was logged, at any level, and written to the terminal."""
    caplog.set_level(logging.DEBUG)

    def texts():
        written = capfd.readouterr()
        return [record.getMessage() for record in caplog.records] + [written.out, written.err]

    return texts


async def test_a_database_on_s3_is_created_written_and_searched(open_database, s3_engine, make):
    writer = await open_database(LOCATION, engine=s3_engine)
    first, second = await writer.write([make("a.md", "alpha"), make("b.md", "beta", pictures={"p": b"x"})])
    reader = await open_database(LOCATION, engine=s3_engine, mode=OpenMode.READ)
    found = await reader.search(hybrid("beta"))
    assert set(found["document_id"].to_pylist()) == {first.id, second.id}
    assert await reader.picture(second.id, "p") == b"x"
    assert await writer.delete(first.id)
    assert await reader.count_documents(filter=None) == 1
    with pytest.raises(ReadOnlyError):
        await reader.delete(second.id)
    info = await reader.info()
    assert (info.size_bytes, info.chunks) == (None, 1)


async def test_a_database_on_s3_is_kept_up_tagged_and_checked(open_database, s3_engine, make):
    database = await open_database(LOCATION, engine=s3_engine)
    await database.write([make("a.md", "alpha")])
    await database.create_tag("then")
    await database.write([make("b.md", "beta")])
    report = await database.vacuum(retention_seconds=None, dry_run=False)
    assert report.failed == []
    tagged = await open_database(LOCATION, engine=s3_engine, mode=OpenMode.READ, tag="then")
    assert await tagged.count_documents(filter=None) == 1
    findings = await database.check(fix=False)
    assert [finding.check for finding in findings if finding.status != "ok"] == []
    assert "writable" not in {finding.check for finding in findings}
    await database.restore_tag("then")
    assert await database.count_documents(filter=None) == 1


async def test_reading_on_s3_writes_nothing(open_database, s3_engine, make, bucket):
    writer = await open_database(LOCATION, engine=s3_engine)
    await writer.write([make("a.md", "alpha")])
    await writer.close()
    before = bucket.bytes()
    reader = await open_database(LOCATION, engine=s3_engine, mode=OpenMode.READ)
    await reader.search(hybrid("alpha"))
    await reader.check(fix=False)
    await reader.close()
    assert bucket.bytes() == before


async def test_two_processes_write_the_same_documents_on_s3(open_database, s3_engine, s3_server, worker_environment):
    authors = ("one", "two")
    jobs = [run_worker(worker_environment, LOCATION, s3_server.endpoint, "write", author, 10) for author in authors]
    await asyncio.gather(*jobs)
    database = await open_database(LOCATION, engine=s3_engine, mode=OpenMode.READ)
    documents = await database.list_documents(limit=None, offset=0, filter=None, include_content=True)
    assert len(documents) == 10
    assert {document.chunk_count for document in documents} == {3}
    assert all(document.title == document.content for document in documents)
    findings = await database.check(fix=False)
    assert [finding for finding in findings if finding.status == "failed"] == []


async def test_a_missing_database_on_s3_is_reported_and_not_created(open_database, s3_engine, bucket):
    for mode in (OpenMode.READ, OpenMode.WRITE):
        with pytest.raises(MissingDatabaseError, match="there is no database 'notes'") as caught:
            await open_database("s3://bucket/nothing", engine=s3_engine, mode=mode)
        assert "bucket" not in str(caught.value)
    assert bucket.objects() == set()


async def test_a_process_ends_in_time_when_the_store_never_answers(silent, worker_environment):
    assert "given up" in await run_worker(worker_environment, LOCATION, silent, "wait", "nobody", 0)


async def opened(open_database, engine_of, endpoint, *, location=LOCATION, **options):
    """What opening at the endpoint raises."""
    with pytest.raises(HaikuRagError) as caught:
        await open_database(location, engine=engine_of(endpoint, **options), mode=OpenMode.READ)
    return caught.value


@pytest.mark.parametrize(
    "case",
    [
        ("s3://absent-bucket/notes", {}, "its bucket does not exist"),
        (LOCATION, {"allow_http": "false"}, "allow_http is not set"),
        ("s3:///absent-bucket", {}, "storage_options do not fit"),
        ("az://absent-bucket/notes", {}, "storage_options do not fit"),
        ("gs://absent-bucket/notes", {"google_service_account": "/the-secret-key"}, "storage_options do not fit"),
        ("db://absent-bucket", {}, "api_key is not set"),
    ],
)
async def test_what_is_wrong_with_a_store_is_said_without_where_it_is(open_database, engine_of, s3_server, case):
    location, options, reason = case
    error = await opened(open_database, engine_of, s3_server.endpoint, location=location, **options)
    assert isinstance(error, StorageError)
    assert reason in str(error)
    assert "absent" not in str(error)
    assert error.__cause__ is error.__context__ is None


@pytest.mark.parametrize("refusal", ["refused", "forbidden", "absent"])
async def test_no_secret_shows_in_an_error_in_a_log_or_on_a_terminal(
    open_database, engine_of, s3_server, shown, refusal
):
    engine = engine_of(s3_server.endpoint)
    database = await open_database(LOCATION, engine=engine)
    if refusal == "refused":
        error = await opened(open_database, engine_of, "http://127.0.0.1:9", client_max_retries="0")
    elif refusal == "absent":
        error = await opened(open_database, engine_of, s3_server.endpoint, location="s3://absent-bucket/notes")
    else:
        with s3_server.refusing_writes(), pytest.raises(StorageError, match="permission was refused") as caught:
            await database.create_tag("then")
        error = caught.value
    texts = [*shown(), repr(error), str(error), repr(engine._settings), str(engine._settings)]
    assert not [secret for text in texts for secret in SECRETS if secret in text]
    assert not [text for text in texts if "s3://" in text or s3_server.endpoint in text]


async def test_storage_options_are_not_shown_by_a_wrong_configuration():
    with pytest.raises(ValueError, match="storage_options") as caught:
        LanceDBSettings.model_validate({"storage_options": {"aws_secret_access_key": ["the-secret-key"]}})
    assert "the-secret-key" not in str(caught.value)
