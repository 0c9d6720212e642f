"""What keeps one live database well, and its past: upkeep, indexes, tags and history."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from haiku.rag.client.capability import require_capability
from haiku.rag.client.covering import CoveringClient
from haiku.rag.client.writing import Writer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from haiku.rag.contracts.maintenance import (
        Capability,
        HistoricDatabase,
        HistoryEntry,
        TaggedDatabase,
        TagInfo,
        UpkeepDatabase,
    )
    from haiku.rag.contracts.storage import Database
    from haiku.rag.models import UpkeepReport

    T = TypeVar("T")

FOREVER = float("inf")
LONGEST_RETENTION = 100 * 366 * 24 * 60 * 60


class MaintainingClient(CoveringClient):
    """The part of a client that looks after one live database, whatever embedding it records.

    `AmbiguousDatabaseError` over several, `TagError` over one that is read at a tag, `StorageError` where its engine
    does not offer it, `ReadOnlyError` for what changes something in a database that was opened for reading.
    """

    async def vacuum(self, *, retention_seconds: float | None = None, dry_run: bool = False) -> UpkeepReport:
        """Remove what nobody needs, compact, and bring indexes up to date, each step with an outcome of its own.

        A step that fails is in the report's `failed` and stops no other. Old states are kept for `retention_seconds`,
        by default `storage.vacuum_retention_seconds`, and longer where readers need them. A dry run changes nothing.
        """
        if retention_seconds is not None and not 0 <= retention_seconds <= LONGEST_RETENTION:
            raise ValueError(f"retention_seconds must be a number from 0 to {LONGEST_RETENTION}")
        return await self._maintain(
            "upkeep",
            "vacuuming",
            lambda database: cast("UpkeepDatabase", database).vacuum(
                retention_seconds=retention_seconds, dry_run=dry_run
            ),
        )

    async def create_index(self) -> dict[str, str]:
        """Build every index again, and the vector index however small the database is; the indexes' states then."""
        return await self._maintain(
            "upkeep", "building indexes", lambda database: cast("UpkeepDatabase", database).create_index()
        )

    async def tags(self) -> list[TagInfo]:
        """The tags, by name."""
        timeout_s = self.config.search.timeout_s
        return await self._maintain(
            "tags", "listing tags", lambda database: cast("TaggedDatabase", database).tags(), timeout_s=timeout_s
        )

    async def create_tag(self, name: str) -> TagInfo:
        """Name the state as it is now, to be read or restored later. `TagError` for a name that is taken or none."""
        return await self._maintain(
            "tags", "creating a tag", lambda database: cast("TaggedDatabase", database).create_tag(name)
        )

    async def delete_tag(self, name: str) -> None:
        """Forget a tag. `TagError` where there is none."""
        await self._maintain(
            "tags", "deleting a tag", lambda database: cast("TaggedDatabase", database).delete_tag(name)
        )

    async def restore_tag(self, name: str) -> str:
        """Make the state of a tag the current one, in one commit; returns the tag that the state before has now."""
        return await self._maintain(
            "tags", "restoring a tag", lambda database: cast("TaggedDatabase", database).restore_tag(name)
        )

    async def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The states of the database that can still be told apart, newest first, all or `limit` of them."""
        if limit is not None and limit < 0:
            raise ValueError("limit must not be negative")
        return await self._maintain(
            "history",
            "reading the history",
            lambda database: cast("HistoricDatabase", database).history(limit=limit),
            timeout_s=self.config.search.timeout_s,
        )

    async def _maintain(
        self,
        capability: Capability,
        operation: str,
        work: Callable[[Database], Awaitable[T]],
        *,
        timeout_s: float = FOREVER,
    ) -> T:
        ref = self._scope.live(operation)
        require_capability(self._session.kernel, ref, capability, operation)
        writer = Writer(self._session, ref, any_embedding=True)
        return await writer.run(work, timeout_s=timeout_s)
