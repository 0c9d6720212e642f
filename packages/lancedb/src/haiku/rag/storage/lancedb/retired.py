"""Generations of tables that are in use no more, and their removal."""

from datetime import UTC, datetime, timedelta
from typing import Any

from haiku.rag.contracts import DatabaseRef
from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.generations import change_layout, layouts_now
from haiku.rag.storage.lancedb.layout import Layout
from haiku.rag.storage.lancedb.schema import DOCUMENTS
from haiku.rag.storage.lancedb.table_tags import tag_versions
from haiku.rag.storage.lancedb.tables import Tables, table_names

ABANDONED = timedelta(days=7)
"""A staged generation to which nothing has been written for so long is gone on with no more."""


class Retired:
    """The generations of one database that may be dropped."""

    def __init__(self, connection: Any, ref: DatabaseRef) -> None:
        self._connection = connection
        self._ref = ref

    async def droppable(self, tables: Tables, retention: timedelta) -> list[Layout]:
        """Those that no reader can be on any more, that nobody fills, and that no tag keeps."""
        if tables.layout.state == "staged":
            return []
        names = await table_names(self._connection)
        return [
            layout
            for layout in await layouts_now(tables.settings, self._ref)
            if await self._is_past(layout, names, retention) and not await self._is_tagged(layout, names)
        ]

    async def drop(self, tables: Tables, layout: Layout) -> None:
        """Drop the tables, and the row last: a number is not given away again while tables of it are there."""
        generation = f"generation = {layout.generation}"
        if layout.state == "staged":
            # Whoever goes on with it at this very moment is refused from here on, and begins anew.
            changes: dict[str, str | datetime | None] = {"state": "old", "changed_at": datetime.now(UTC)}
            if not await change_layout(tables.settings, f"{generation} AND state = 'staged'", changes):
                return
        names = await table_names(self._connection)
        for name in layout.tables.values():
            if name in names:
                await self._connection.drop_table(name, ignore_missing=True)
        condition = f"{generation} AND state = 'old'"
        await committed(tables.settings, lambda: tables.settings.delete(condition))

    async def _is_past(self, layout: Layout, names: set[str], retention: timedelta) -> bool:
        now = datetime.now(UTC)
        if layout.state == "old":
            return now - layout.changed_at > retention
        return layout.state == "staged" and now - await self._last_written(layout, names) > ABANDONED

    async def _last_written(self, layout: Layout, names: set[str]) -> datetime:
        if layout.tables[DOCUMENTS] not in names:
            return layout.changed_at
        documents = await self._connection.open_table(layout.tables[DOCUMENTS])
        try:
            moments: list[datetime] = [entry["timestamp"].astimezone(UTC) for entry in await documents.list_versions()]
        finally:
            documents.close()
        return max([layout.changed_at, *moments])

    async def _is_tagged(self, layout: Layout, names: set[str]) -> bool:
        if layout.tables[DOCUMENTS] not in names:
            return False
        documents = await self._connection.open_table(layout.tables[DOCUMENTS])
        try:
            return bool(await tag_versions(documents))
        finally:
            documents.close()
