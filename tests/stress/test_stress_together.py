"""Many processes on one database: writers of the same documents, and a reader who never sees half of one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import IO

import anyio
import harness
import pytest
import victim

from haiku.rag.client import HaikuRAG
from haiku.rag.models import SearchType

SECONDS = 3 * int(os.environ.get("HAIKU_RAG_STRESS", "1"))
"""How long writers write: 3 in the tests, 30 under stress."""
WRITERS = 8

pytestmark = [pytest.mark.anyio, pytest.mark.stress]


def drained(process: subprocess.Popen[str]) -> threading.Thread:
    """Reads what a process tells, so that it is never held up."""

    def read(stream: IO[str]) -> None:
        for _ in stream:
            pass

    assert process.stdout is not None
    thread = threading.Thread(target=read, args=(process.stdout,))
    thread.start()
    return thread


async def test_processes_that_upsert_the_same_documents_leave_each_one_whole(
    location: Path, victims: harness.Victims
) -> None:
    configured = victim.config(str(location), harness.MODELS[0])
    async with HaikuRAG(config=configured, create=True) as client:
        await client.import_documents([victim.document(f"shared-{n}", "first") for n in range(victim.SHARED)])
    processes = [victims.start(harness.MODELS[0], seed, f"upsert:{SECONDS}") for seed in range(WRITERS)]
    for process in processes:
        await anyio.to_thread.run_sync(harness.go, process)
    readers = [drained(process) for process in processes]
    await anyio.sleep(SECONDS / 2)
    os.kill(processes[3].pid, signal.SIGKILL)
    for process, reader in zip(processes, readers, strict=True):
        await anyio.to_thread.run_sync(process.wait)
        await anyio.to_thread.run_sync(reader.join)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert [process.returncode for process in processes] == [0, 0, 0, -signal.SIGKILL, 0, 0, 0, 0]
    client = await harness.open_reader(location)
    try:
        state = await harness.seen(client)
        await harness.parts_whole(client)
    finally:
        await client.aclose()
    assert sorted(state) == sorted(f"shared-{n}" for n in range(victim.SHARED))


async def test_a_reader_meets_no_error_and_no_half_document_while_another_process_does_everything(
    location: Path, victims: harness.Victims
) -> None:
    configured = victim.config(str(location), harness.MODELS[0])
    async with HaikuRAG(config=configured, create=True) as client:
        await client.import_documents([victim.document(f"first-{n}", "first") for n in range(12)])
    fast = victim.config(str(location), harness.MODELS[0], read_consistency_interval_seconds=0.2)
    rng = random.Random(7)
    until = time.monotonic() + 2 * SECONDS
    checks = 0
    async with HaikuRAG(config=fast, read_only=True) as reader:
        model = harness.MODELS[0]
        for number in range(10_000):
            job = rng.choice(harness.JOBS)
            if job == "rebuild":
                model = harness.MODELS[number % 2]
            # Restoring and rebuilding may bring vectors of another model, with which the reader's cannot be compared.
            stays = job not in {"rebuild", "tag"} and model == harness.MODELS[0]
            process = victims.start(model, number, job)
            await anyio.to_thread.run_sync(harness.go, process)
            draining = drained(process)
            stop = time.monotonic() + (5.0 if job == "rebuild" else 0.6)
            while time.monotonic() < stop and process.poll() is None:
                await whole(reader, "vector" if stays else "fts")
                checks += 1
            if process.poll() is None:
                process.kill()
            await anyio.to_thread.run_sync(process.wait)
            draining.join()
            model = await harness.recorded(location)
            if time.monotonic() > until:
                break
    assert checks > 5


async def whole(reader: HaikuRAG, kind: SearchType) -> None:
    """Every hit of one search belongs to a document of which all passages were found, of one version."""
    hits = await reader.search("part0 part1 part2", 500, search_type=kind)
    versions: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for hit in hits:
        versions.setdefault(str(hit.document_id), set()).add(hit.content.split()[0])
        counts[str(hit.document_id)] = counts.get(str(hit.document_id), 0) + 1
    assert hits
    assert all(len(tokens) == 1 for tokens in versions.values()), versions
    assert set(counts.values()) == {victim.PARTS}, counts
