"""The steps there are, and taking them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from haiku.rag.contracts import DatabaseRef
from haiku.rag.contracts.maintenance import Migration
from haiku.rag.storage.lancedb.layout import check_version
from haiku.rag.storage.lancedb.migrations import to_2
from haiku.rag.storage.lancedb.migrations.to_2 import Prepare
from haiku.rag.storage.lancedb.schema import SCHEMA_VERSION, SETTINGS
from haiku.rag.storage.lancedb.tables import is_there, not_there
from haiku.rag.storage.lancedb.text_index import TEXT_INDEXES, build_text_indexes


@dataclass(frozen=True, kw_only=True)
class Step:
    """From the version before to `version`.

    `run` takes the connection and what prepares a filled table of chunks, and ends in one commit of the settings.
    `sweep` removes what the step has left over: the tables it replaced, and those of a run that was killed.
    """

    version: int
    summary: str
    run: Callable[[Any, Prepare], Awaitable[None]]
    sweep: Callable[[Any], Awaitable[None]]


STEPS = (Step(version=2, summary=to_2.SUMMARY, run=to_2.run, sweep=to_2.sweep),)


async def pending(connection: Any, ref: DatabaseRef) -> Sequence[Migration]:
    """The steps that a database lacks. `MigrationRequiredError` for one that is newer than this package."""
    version = await _version(connection, ref)
    if version > SCHEMA_VERSION:
        check_version(version, ref)
    return [Migration(version=step.version, summary=step.summary) for step in STEPS if step.version > version]


async def migrate(connection: Any, ref: DatabaseRef) -> Sequence[Migration]:
    """Take them, and remove what earlier runs have left over; gives the steps taken."""
    taken = await pending(connection, ref)
    for step in STEPS[len(STEPS) - len(taken) :]:
        # Only the newest version can be opened: tables on the way to it need no indexes.
        await step.run(connection, create_indexes if step.version == SCHEMA_VERSION else _nothing)
    for step in STEPS:
        await step.sweep(connection)
    return taken


async def _version(connection: Any, ref: DatabaseRef) -> int:
    if not await is_there(connection, SETTINGS):
        raise await not_there(connection, replace(ref, tag=None))
    settings = await connection.open_table(SETTINGS)
    try:
        rows = (await settings.query().select(["schema_version"]).to_arrow()).to_pylist()
    finally:
        settings.close()
    if not rows:
        raise await not_there(connection, ref)
    return int(min(row["schema_version"] for row in rows))


async def create_indexes(chunks: Any) -> None:
    """The indexes without which full text finds nothing; upkeep makes the others."""
    if await chunks.count_rows():
        await build_text_indexes(chunks, None, names=TEXT_INDEXES)


async def _nothing(_: Any) -> None:
    """No preparation."""
