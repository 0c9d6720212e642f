"""Which revisions' rows may be removed, and their removal."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.live import LiveTables
from haiku.rag.storage.lancedb.rows import revision_nanoseconds
from haiku.rag.storage.lancedb.text import one_of

SHORTEST_GRACE_SECONDS = 60.0
IN_FLIGHT_SECONDS = 3600.0
"""A revision that nothing names may belong to a writer that has yet to commit: it is left alone for this long."""
DELETED_AT_ONCE = 500
PATIENCE_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Dead:
    """The revisions of one table whose rows may be removed."""

    table: Any
    revisions: list[str]

    def conditions(self) -> list[str]:
        """Conditions that select the rows, a bounded number of revisions each."""
        starts = range(0, len(self.revisions), DELETED_AT_ONCE)
        return [one_of("revision", self.revisions[start : start + DELETED_AT_ONCE]) for start in starts]

    async def rows(self) -> int:
        """How many there are."""
        return sum([await self.table.count_rows(condition) for condition in self.conditions()])


class Garbage:
    """The rows of chunks, items and pictures whose revision no document names any more."""

    def __init__(self, live: LiveTables, *, interval: float) -> None:
        self._live = live
        self._grace = max(SHORTEST_GRACE_SECONDS, 4 * interval)
        self._superseded: dict[str, float] = {}

    def note_superseded(self, revisions: Iterable[str]) -> None:
        """Remember what one's own commit has replaced: readers may still be on it until the grace is over."""
        now = time.monotonic()
        self._superseded.update(dict.fromkeys(revisions, now))

    async def find(self) -> list[Dead]:
        """What no reader can be on and no writer can yet commit."""
        tables = self._live.tables
        await tables.documents.checkout_latest()
        live = await _revisions(tables.documents)
        found, there = [], set[str]()
        for table in (tables.chunks, tables.items, tables.pictures):
            await table.checkout_latest()
            dead = await _revisions(table) - live
            there |= dead
            removable = await self._removable(dead)
            if removable:
                found.append(Dead(table=table, revisions=removable))
        self._forget_all_but(there)
        return found

    async def remove(self, found: Sequence[Dead]) -> None:
        """Delete it."""
        for dead in found:
            for condition in dead.conditions():
                await committed(dead.table, lambda: dead.table.delete(condition), patience=PATIENCE_SECONDS)  # noqa: B023
        for revision in {revision for dead in found for revision in dead.revisions}:
            self._superseded.pop(revision, None)

    def _forget_all_but(self, there: set[str]) -> None:
        """Let go of what was replaced long ago and has no rows: another process removed them, or it had none."""
        past = time.monotonic() - self._grace
        self._superseded = {name: at for name, at in self._superseded.items() if at >= past or name in there}

    async def _removable(self, dead: set[str]) -> list[str]:
        past = time.monotonic() - self._grace
        own = {revision for revision in dead if self._superseded.get(revision, past) < past}
        before = time.time_ns() - int(IN_FLIGHT_SECONDS * 1e9)
        old = {revision for revision in dead - own if revision_nanoseconds(revision) < before}
        if old:
            old = await self._dead_since(time.time() - self._grace, old)
        return sorted(own | old)

    async def _dead_since(self, moment: float, revisions: set[str]) -> set[str]:
        """Those of the revisions that the documents did not name at that moment: no reader is on them any more.

        None where no version is left that is as old: another time there will be.
        """
        versions = await self._live.tables.documents.list_versions()
        past = [entry["version"] for entry in versions if entry["timestamp"].timestamp() <= moment]
        if not past:
            return set()
        documents = await self._live.documents_at(max(past))
        try:
            return revisions - await _revisions(documents)
        finally:
            documents.close()


async def _revisions(table: Any) -> set[str]:
    found = await table.query().select(["revision"]).to_arrow()
    return set(pc.unique(found["revision"]).to_pylist())
