"""Small files of a table put together, and the files of old versions removed."""

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.garbage import PATIENCE_SECONDS
from haiku.rag.storage.lancedb.table_tags import tag_versions

MOST_DELETED = 0.1
"""The engine writes a fragment anew when a larger share of its rows is deleted."""
WORTHWHILE = 4
"""A large table is written anew once so many times what is new or deleted in it makes up the whole: all in all every
row is written some five times, however a table grows, and what older versions hold stays in proportion."""
BATCH_ROWS = 16
SMALLEST_BUFFER_BYTES = 8 << 20
LEAVE_VERSIONS = timedelta(days=30 * 365)
BEFORE_TAGS = timedelta(hours=1)


def bound_memory(target_bytes: int) -> None:
    """Bound what compaction holds in memory, for this process, before it opens anything; what a user has set counts.

    The engine reads fragments in batches of rows, 8,192 unless told otherwise: all of a table with wide rows. It takes
    the size from the environment alone, and searches and index builds are as fast with small batches.
    """
    os.environ.setdefault("LANCE_DEFAULT_BATCH_SIZE", str(BATCH_ROWS))
    os.environ.setdefault("LANCE_DEFAULT_IO_BUFFER_SIZE", str(max(SMALLEST_BUFFER_BYTES, target_bytes // 8)))


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How a table lies in its fragments.

    `fresh` rows are outside of the largest fragment, `deleted` ones are still in the files; it `is_worn` where so much
    of a fragment is deleted that the engine writes it anew by itself.
    """

    bytes: int
    rows: int
    fragments: int
    fresh: int
    deleted: int
    is_worn: bool

    def is_compact(self) -> bool:
        """Whether the engine finds nothing to put together."""
        return self.fragments < 2 and not self.is_worn

    def is_worth_it(self, freely: int) -> bool:
        """Whether writing it anew is in proportion; up to `freely` bytes it always is.

        The engine puts all fragments together or none: they never have as many rows as it aims at.
        """
        return self.bytes <= freely or (self.fresh + self.deleted) * WORTHWHILE >= self.rows


@dataclass(frozen=True, kw_only=True)
class Removed:
    """What a clean-up has removed, or would remove: then `bytes` is the most that it can be, None where unknown."""

    versions: int
    bytes: int | None


async def shape_of(table: Any) -> Shape:
    """The shape of a table's newest version."""
    await table.checkout_latest()
    size = (await table.stats())["total_bytes"]
    addresses = (await table.query().select([]).with_row_id().to_arrow())["_rowid"].to_numpy()
    fragments, places = addresses >> np.uint64(32), addresses & np.uint64(0xFFFFFFFF)
    _, inverse, live = np.unique(fragments, return_inverse=True, return_counts=True)
    written = np.zeros(len(live), np.int64)
    np.maximum.at(written, inverse, places.astype(np.int64) + 1)
    deleted = written - live
    return Shape(
        bytes=size,
        rows=len(addresses),
        fragments=len(live),
        fresh=len(addresses) - int(live.max(initial=0)),
        deleted=int(deleted.sum()),
        is_worn=bool((deleted > MOST_DELETED * written).any()),
    )


async def compact(table: Any) -> None:
    """Put a table's fragments together; its indexes cover them then. Old versions stay."""

    async def optimize() -> None:
        await table.optimize(cleanup_older_than=LEAVE_VERSIONS)

    await committed(table, optimize, patience=PATIENCE_SECONDS)


async def removable(table: Any, retention: timedelta) -> int:
    """How many versions are older than the retention, the newest and whatever a tag keeps aside."""
    before = datetime.now() - await kept_for(table, retention)
    versions = await table.list_versions()
    newest = max(entry["version"] for entry in versions)
    return sum(entry["timestamp"] < before and entry["version"] != newest for entry in versions)


async def clean_up(table: Any, retention: timedelta) -> Removed:
    """Remove the versions that are older than the retention, with the files that only they need."""
    kept = await kept_for(table, retention)
    removed: list[Removed] = []

    async def optimize() -> None:
        pruned = (await table.optimize(cleanup_older_than=kept)).prune
        removed.append(Removed(versions=pruned.old_versions_removed, bytes=pruned.bytes_removed))

    await committed(table, optimize, patience=PATIENCE_SECONDS)
    return removed[-1]


async def kept_for(table: Any, retention: timedelta) -> timedelta:
    """For how long a table's versions are kept.

    The engine removes nothing where that would take a tagged version, so what is as old as the oldest tag stays.
    """
    tagged = set((await tag_versions(table)).values())
    if not tagged:
        return retention
    made: list[datetime] = [entry["timestamp"] for entry in await table.list_versions() if entry["version"] in tagged]
    return max(retention, datetime.now() - min(made) + BEFORE_TAGS)
