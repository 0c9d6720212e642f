"""Killed at random points, a database is whole, old or new, and opens."""

from __future__ import annotations

import os
import random
from pathlib import Path

import harness
import pytest
import victim

from haiku.rag.client import HaikuRAG

STRESS = int(os.environ.get("HAIKU_RAG_STRESS", "1"))
ROUNDS = 2 if STRESS == 1 else 5 * STRESS
"""Kills of each job: with six jobs 12 in the tests, and 300 under stress."""

pytestmark = [pytest.mark.anyio, pytest.mark.stress]


async def fill(location: Path, expected: harness.Expected) -> None:
    configured = victim.config(str(location), harness.MODELS[0])
    async with HaikuRAG(config=configured, create=True) as client:
        for batch in range(3):
            changes = {f"first-{batch}-{number}": f"first{batch}" for number in range(4)}
            await client.import_documents([victim.document(uri, token) for uri, token in changes.items()])
            expected.states = [{**expected.states[-1], **changes}]


async def test_killed_at_random_points_every_document_is_whole_old_or_new(
    location: Path, victims: harness.Victims
) -> None:
    rng = random.Random(20261)
    expected = harness.Expected()
    await fill(location, expected)
    plan = [job for job in harness.JOBS for _ in range(ROUNDS)]
    rng.shuffle(plan)
    model = harness.MODELS[0]
    for number, job in enumerate(plan):
        if job == "rebuild":
            model = harness.MODELS[number % 2]
        process = victims.start(model if job == "rebuild" else await harness.recorded(location), number, job)
        expected.follow(iter(harness.killed(process, harness.delay_of(job, rng))))
        await verify(location, expected, deep=number % 10 == 0 or number == len(plan) - 1)


async def verify(location: Path, expected: harness.Expected, *, deep: bool) -> None:
    """The database is in one of the expected states, and is from now on expected in just that."""
    client = await harness.open_reader(location)
    try:
        state = await harness.seen(client)
        assert state in expected.states
        expected.states = [state]
        if deep:
            await harness.parts_whole(client)
        tags = {tag.name: tag for tag in await client.tags() if not tag.name.startswith("before-restore-")}
    finally:
        await client.aclose()
    complete = {name for name, tag in tags.items() if tag.complete}
    await settle_doubt(location, expected, complete=complete, listed=set(tags))
    assert complete == set(expected.tags)
    for name in list(expected.tags)[-1:] if not deep else expected.tags:
        await tag_is_whole(location, name, expected.tags[name])


async def settle_doubt(location: Path, expected: harness.Expected, *, complete: set[str], listed: set[str]) -> None:
    """A tag whose making or deleting was broken off is complete, or it is not one and can be deleted."""
    doubtful, expected.doubtful_tag = expected.doubtful_tag, None
    if doubtful is None or doubtful in complete:
        return
    expected.tags.pop(doubtful, None)
    if doubtful in listed:
        client = await harness.open_reader(location)
        try:
            await client.delete_tag(doubtful)
        finally:
            await client.aclose()


async def tag_is_whole(location: Path, name: str, state: harness.State) -> None:
    client = await harness.open_reader(location, tag=name)
    try:
        assert await harness.seen(client) == state
    finally:
        await client.aclose()
