"""Commits that conflict with another writer's are tried again."""

import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS, is_conflict

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
LONGEST_PAUSE_SECONDS = 2.0


async def committed(table: Any, operation: Callable[[], Awaitable[T]], *, patience: float = PATIENCE_SECONDS) -> T:
    """Run a commit; on a conflict pause for a random while, take the table's newest version and try again.

    Raises the conflict itself once `patience` seconds have gone by.
    """
    deadline = time.monotonic() + patience
    attempt = 0
    while True:
        try:
            return await operation()
        except ENGINE_ERRORS as error:
            if not is_conflict(error) or time.monotonic() > deadline:
                raise
        attempt += 1
        longest = min(LONGEST_PAUSE_SECONDS, 0.02 * 2**attempt)
        await anyio.sleep(random.uniform(0.0, longest))  # noqa: S311 - it spreads writers, it guards nothing
        await table.checkout_latest()
