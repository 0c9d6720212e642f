"""Several processes on one database, and processes that are killed."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from haiku.rag.contracts import CandidateQuery

WORKER = Path(__file__).with_name("lancedb_worker.py")
WRITERS = 8
SHARED = 20 * int(os.environ.get("HAIKU_RAG_STRESS", "1"))

pytestmark = [pytest.mark.anyio, pytest.mark.stress]


@pytest.fixture
def start(worker_environment, location):
    """Starts workers, and makes sure that none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def worker(job: str, name: str, count: int = 0) -> subprocess.Popen[str]:
        command = [sys.executable, str(WORKER), str(location), job, name, str(count)]
        process = subprocess.Popen(
            command, env=worker_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield worker
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


async def filled(open_database, make):
    database = await open_database()
    await database.write([make(f"filled-{number}", *(f"fill {n}" for n in range(3))) for number in range(100)])
    await database.close()


async def finished(process):
    """What a process said; the engine's warnings about conflicts that were met are not among it."""
    out, err = await asyncio.to_thread(process.communicate)
    assert (process.returncode, err) == (0, "")
    return out


async def test_eight_processes_that_create_the_same_uris_leave_one_whole_document_each(
    open_database, make, start, location, tmp_path
):
    await filled(open_database, make)
    reader = start("read", str(tmp_path / "stop"))
    writers = [start("write", f"writer{number}", SHARED) for number in range(WRITERS)]
    for process in (reader, *writers):
        assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
    (tmp_path / "go").touch()
    for writer in writers:
        assert await finished(writer) == ""
    (tmp_path / "stop").touch()
    assert (await finished(reader)).startswith("checked")
    database = await open_database()
    documents = await database.list_documents(limit=None, offset=0, filter="uri LIKE 'shared-%'", include_content=True)
    assert Counter(document.uri for document in documents) == Counter(f"shared-{n}" for n in range(SHARED))
    assert await database.count_documents(filter=None) == 100 + SHARED
    for document in documents:
        author = document.content
        assert document.title == author
        assert [item.text for item in await database.items(document.id)] == [author] * 3
        assert await database.picture(document.id, "p") == author.encode()
    coverage = await database._live.tables.chunks.index_stats("text_idx")
    assert coverage.num_unindexed_rows == 0


async def test_a_writer_killed_midway_leaves_the_last_commit_whole(open_database, make, start, tmp_path):
    database = await open_database()
    await database.write([make("other", "alpha")])
    for round_number in range(3):
        writer = start("rewrite", f"round{round_number}-", 1000)
        (tmp_path / "go").touch()
        assert await asyncio.to_thread(writer.stdout.readline) == "ready\n"
        for _ in range(3 + round_number):
            assert await asyncio.to_thread(writer.stdout.readline) == "written\n"
        os.kill(writer.pid, signal.SIGKILL)
        await asyncio.to_thread(writer.wait)
        document = await database.document_by_uri("rewritten")
        assert document.content.startswith(f"round{round_number}-")
        assert [item.text for item in await database.items(document.id)] == [document.content] * 3
        found = await database.search(
            CandidateQuery(search_type="fts", depth=50, text="rewritten", filter="uri = 'rewritten'")
        )
        contents = [chunk.content for chunk in await database.chunks_by_id(found["chunk_id"].to_pylist())]
        assert sorted(contents) == [f"{document.content} rewritten part {n}" for n in range(3)]
        assert await database.count_documents(filter=None) == 2
