"""Changing which generation is the current one, so that no commit that was acknowledged is lost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio

from haiku.rag.contracts import DatabaseRef
from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.layout import Layout, current_layout, layout_table, read_layouts
from haiku.rag.storage.lancedb.location import missing
from haiku.rag.storage.lancedb.text import quoted

SEAL_SECONDS = 20.0
"""A seal that has not changed for so long was left by a process that died, and is broken."""
PAUSE_SECONDS = 0.02
MOMENT = timedelta(microseconds=1)
"""The least that two moments in the settings differ by."""
SWITCH = (
    "(source.state = 'old' AND target.state = 'sealed' AND target.changed_at = source.changed_at)"
    " OR (source.state = 'current' AND target.state = 'staged')"
)


async def layouts_now(settings: Any, ref: DatabaseRef) -> list[Layout]:
    """Every generation as of now."""
    await settings.checkout_latest()
    return await read_layouts(settings, ref)


async def change_layout(settings: Any, condition: str, changes: dict[str, str | datetime | None]) -> bool:
    """Change these columns of the row that the condition selects, and no other, in one commit.

    False where no row satisfies the condition any more, so that of two processes one does it.
    """
    await settings.checkout_latest()
    result = await committed(settings, lambda: settings.update(changes, where=condition))
    return bool(result.rows_updated)


async def settled_layout(settings: Any, ref: DatabaseRef) -> Layout:
    """The current generation once nobody changes it: what a commit has to be in to count."""
    seen, deadline = None, 0.0
    while True:
        layout = current_layout(await layouts_now(settings, ref))
        if layout is None:
            raise missing(ref)
        if layout.state == "current":
            return layout
        if layout != seen:
            seen, deadline = layout, anyio.current_time() + SEAL_SECONDS
        elif anyio.current_time() > deadline:
            await _unseal(settings, layout)
        await anyio.sleep(PAUSE_SECONDS)


@asynccontextmanager
async def sealed(settings: Any, ref: DatabaseRef) -> AsyncIterator[Layout]:
    """Hold the current generation sealed: whoever commits to it waits before acknowledging, and nobody else seals it.

    What the documents hold once the seal is on is all that was acknowledged. Keep it short: after `SEAL_SECONDS` others
    break the seal, and then `switch` refuses.
    """
    while True:
        layout = await settled_layout(settings, ref)
        seal = replace(layout, state="sealed", changed_at=max(datetime.now(UTC), layout.changed_at + MOMENT))
        condition = f"generation = {layout.generation} AND state = 'current'"
        if await change_layout(settings, condition, {"state": "sealed", "changed_at": seal.changed_at}):
            break
    try:
        yield seal
    finally:
        with anyio.CancelScope(shield=True):
            await _unseal(settings, seal)


async def switch(settings: Any, ref: DatabaseRef, seal: Layout, successor: Layout) -> bool:
    """Make a staged generation the current one and the sealed one old, in one commit; False where the seal was broken.

    The caller holds the seal. Upkeep finds the old generation by its state.
    """
    # Where the seal was broken only the staged row changes: dated before the seal, it is not the one that is read.
    new = replace(successor, state="current", changed_at=seal.changed_at - MOMENT)
    rows = layout_table(replace(seal, state="old", job=None), new)
    merging = settings.merge_insert("generation").when_matched_update_all(where=SWITCH).use_index(False)
    await committed(settings, lambda: merging.execute(rows))
    current = current_layout(await layouts_now(settings, ref))
    if current is not None and current.generation == successor.generation:
        return True
    condition = f"generation = {successor.generation} AND state = 'current'"
    await change_layout(settings, condition, {"state": "staged"})
    return False


async def _unseal(settings: Any, seal: Layout) -> None:
    moment = quoted(seal.changed_at.isoformat())
    condition = f"generation = {seal.generation} AND state = 'sealed' AND changed_at = timestamp {moment}"
    await change_layout(settings, condition, {"state": "current"})
