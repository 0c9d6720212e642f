"""A process that dies at a point of an operation: `lancedb_killed_worker.py LOCATION OPERATION TAG FUNCTION:TIME`."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import lancedb
from lancedb.table import AsyncTags

from haiku.rag.contracts import DatabaseRef, OpenMode
from haiku.rag.storage.lancedb import restoring, tags
from haiku.rag.storage.lancedb.migrations import steps, to_2
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage

PLACES: dict[str, tuple[Any, str]] = {
    "pin": (tags, "pin"),
    "created": (tags, "created"),
    "removed": (tags, "removed"),
    "copied": (restoring, "_copy"),
    "merged": (restoring, "committed"),
    "switched": (restoring, "switch"),
    "staged": (restoring, "change_layout"),
    "table-made": (lancedb.AsyncConnection, "create_table"),
    "chunks-copied": (to_2, "_copy"),
    "chunks-appended": (to_2, "_append"),
    "indexed": (steps, "create_indexes"),
    "tag-carried": (AsyncTags, "create"),
    "settings-written": (to_2, "_switch"),
    "swept": (lancedb.AsyncConnection, "drop_table"),
}


def killing(function: Callable[..., Any], times: int) -> Callable[..., Any]:
    """The function, after so many calls of which the process dies."""
    left = times

    async def call(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        result = await function(*arguments, **named)
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return call


async def main(location: str, operation: str, tag: str, point: str) -> None:
    """Begin the operation, and be killed."""
    place, _, times = point.partition(":")
    owner, name = PLACES[place]
    setattr(owner, name, killing(getattr(owner, name), int(times)))
    storage = LanceDBStorage(LanceDBSettings())
    ref = DatabaseRef(name="notes", location=location, storage="lancedb")
    if operation == "migrate":
        await storage.migrate(ref)
    database = await storage.open(ref, mode=OpenMode.WRITE, identity=None)
    await {"restore": database.restore_tag, "delete": database.delete_tag}[operation](tag)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
