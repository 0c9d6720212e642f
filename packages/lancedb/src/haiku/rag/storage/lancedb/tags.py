"""Tags: names for states of a database, each a tag of that name on every table of a generation."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from haiku.rag.contracts import DatabaseRef
from haiku.rag.contracts.maintenance import TagInfo
from haiku.rag.errors import TagError
from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.layout import read_layouts
from haiku.rag.storage.lancedb.schema import SETTINGS
from haiku.rag.storage.lancedb.table_tags import created, no_such_tag, pin, removed, tag_versions
from haiku.rag.storage.lancedb.tables import Tables, open_generations

NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")


class Tags:
    """The tags of one database.

    The documents' tag is made last and removed first: a tag is whole once the documents have it. The parts' versions
    are taken after the documents' one, so they hold every part of the revisions that it names.
    """

    def __init__(self, connection: Any, ref: DatabaseRef) -> None:
        self._connection = connection
        self._ref = ref

    @asynccontextmanager
    async def generations(self) -> AsyncIterator[list[Tables]]:
        """Handles of its own on every generation, the current one first."""
        settings = await self._connection.open_table(SETTINGS)
        opened: list[Tables] = []
        try:
            opened = await open_generations(self._connection, settings, await read_layouts(settings, self._ref))
            yield opened
        finally:
            for tables in opened:
                tables.close_parts()
            settings.close()

    async def infos(self) -> list[TagInfo]:
        """The tags by name, those of older generations among them."""
        infos: dict[str, TagInfo] = {}
        async with self.generations() as generations:
            for tables in reversed(generations):
                versions = [await tag_versions(table) for table in tables.parts]
                moments = await _moments(tables) if versions[3] else {}
                for name in set().union(*versions):
                    complete = all(name in tagged for tagged in versions)
                    if complete or name not in infos:
                        infos[name] = TagInfo(name=name, created_at=moments.get(name), complete=complete)
        return [infos[name] for name in sorted(infos)]

    async def create(self, name: str) -> TagInfo:
        """Name the state as it is now; one whose creation was broken off is made anew. `TagError` for a taken name."""
        self._check(name)
        async with self.generations() as generations:
            for tables in generations:
                versions = await tables.tagged(name)
                self._check_free(name, None in versions)
                if versions[0] is not None:
                    await removed(tables.documents, name)
            await self._put(generations[0], name)
            moments = await _moments(generations[0])
        return TagInfo(name=name, created_at=moments.get(name))

    async def delete(self, name: str) -> None:
        """Forget a tag, whole or not; `TagError` where there is none."""
        self._check_there(name, await self._removed(name))

    async def _removed(self, name: str) -> bool:
        async with self.generations() as generations:
            tables = [table for generation in generations for table in generation.parts]
            # The engine fails over a name that no tag can have, so it is asked for those that it lists only.
            return any([await removed(table, name) for table in tables if name in await tag_versions(table)])

    async def _put(self, tables: Tables, name: str) -> None:
        await tables.documents.checkout_latest()
        version = await tables.documents.version()
        # A commit that changes nothing: its moment is the tag's, which the engine does not tell.
        await committed(tables.pictures, lambda: tables.pictures.delete("false"))
        await tables.checkout_latest()
        parts = [(table, await table.version()) for table in tables.parts[1:]]
        for table, newest in parts:
            await pin(table, name, newest)
        self._check_free(name, await created(tables.documents, name, version))
        # Who makes the same tag at the same time may have left an older version of a part, or who deletes it, none.
        for table, newest in parts:
            await pin(table, name, newest)

    def _check(self, name: str) -> None:
        if NAME.fullmatch(name) and not name.endswith((".", ".lock")):
            return
        raise TagError(
            f"'{name}' is not a name for a tag of database '{self._ref.name}': use up to 100 letters and digits of "
            "ASCII, and '-', '_' and single '.' between them.",
            source=self._ref.name,
        )

    def _check_free(self, name: str, free: bool) -> None:
        if free:
            return
        raise TagError(
            f"database '{self._ref.name}' has a tag '{name}' already. Choose another name, or delete it first.",
            source=self._ref.name,
        )

    def _check_there(self, name: str, found: bool) -> None:
        if not found:
            raise no_such_tag(self._ref, name)


async def _moments(tables: Tables) -> dict[str, datetime]:
    """When the tags of a generation were made: the moments of the pictures' versions that they are on."""
    versions = await tag_versions(tables.pictures)
    moments = {entry["version"]: entry["timestamp"] for entry in await tables.pictures.list_versions()}
    return {name: moments[version].astimezone(UTC) for name, version in versions.items() if version in moments}
