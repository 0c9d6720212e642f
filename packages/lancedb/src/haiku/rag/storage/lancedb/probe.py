"""Whether an object store keeps the first of two objects of one name: every commit rests on it.

Several tables of one name are created at once. Each creation writes the object of its version on condition that there
is none. A store that honours that lets one through, or gives a second one the next version; one that does not lets
several write the same object, and only the last is left. The tables are scratch and are dropped again.
"""

import asyncio
import time
from typing import Any

import anyio
import pyarrow as pa

from haiku.rag.contracts import DatabaseRef
from haiku.rag.contracts.maintenance import Finding
from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS, failure_reason
from haiku.rag.storage.lancedb.rows import new_revision, revision_nanoseconds
from haiku.rag.storage.lancedb.tables import table_names
from haiku.rag.storage.lancedb.verdicts import verdict

CHECK = "put_if_absent"
PREFIX = "probe-"
SCRATCH = pa.schema([pa.field("nothing", pa.int8())])
RIVALS = 8
ROUNDS = 3
LEFT_BEHIND_NS = 3600 * 10**9
"""Scratch of a probe that was killed is dropped by the next one after this time."""
PROBE_SECONDS = 60.0
CLEANING_SECONDS = 10.0
NOT_PROBED = "Not asked whether the store keeps the first of two objects of one name; --probe does, by writing to it."
KEPT = "The store keeps the first of two objects of one name."
LOST = (
    "The store lets a second writer overwrite the first one's object: commits of several writers can be lost without a "
    "word."
)
REMEDY = "Use a store that honours conditional writes (If-None-Match), or let only one process write."


async def probed(connection: Any, ref: DatabaseRef, *, probe: bool) -> list[Finding]:
    """What the store is found to do; only a probe writes to it. Nothing to say of a local folder or of a service."""
    if ref.path is not None or ref.location.startswith("db://"):
        return []
    if not probe:
        return [Finding(check=CHECK, status="ok", message=NOT_PROBED)]
    try:
        with anyio.fail_after(PROBE_SECONDS):
            await _sweep(connection)
            kept = all([await _keeps_the_first(connection) for _ in range(ROUNDS)])
    except ENGINE_ERRORS as error:
        text = f"The store could not be asked whether it keeps the first of two objects: {failure_reason(error)}."
        return [Finding(check=CHECK, status="warning", message=text, remedy="haiku-rag doctor --probe")]
    return [verdict(CHECK, "" if kept else LOST, fine=KEPT, status="failed", remedy=REMEDY)]


async def _keeps_the_first(connection: Any) -> bool:
    name = PREFIX + new_revision(time.time_ns())
    try:
        attempts = [connection.create_table(name, schema=SCRATCH) for _ in range(RIVALS)]
        outcomes = await asyncio.gather(*attempts, return_exceptions=True)
        made = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        if not made:
            raise next(outcome for outcome in outcomes if isinstance(outcome, BaseException))
        await made[0].checkout_latest()
        versions: int = await made[0].version()
        return len(made) <= versions
    finally:
        with anyio.move_on_after(CLEANING_SECONDS, shield=True):
            await _drop(connection, name)


async def _sweep(connection: Any) -> None:
    before = time.time_ns() - LEFT_BEHIND_NS
    for name in await table_names(connection):
        if name.startswith(PREFIX) and revision_nanoseconds(name.removeprefix(PREFIX)) < before:
            await _drop(connection, name)


async def _drop(connection: Any, name: str) -> None:
    try:
        await connection.drop_table(name)
    except ENGINE_ERRORS:
        return  # there is none, or the store lets nothing be deleted: then the next probe tries again
