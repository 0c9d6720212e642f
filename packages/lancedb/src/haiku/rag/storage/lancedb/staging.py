"""Capability `rebuild`: a second set of tables that is filled unseen, and put in place of the first."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

import anyio
import pyarrow as pa

from haiku.rag.errors import StorageError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.generations import (
    SEAL_SECONDS,
    change_layout,
    layouts_now,
    sealed,
    settled_layout,
    switch,
)
from haiku.rag.storage.lancedb.layout import Layout, layout_table
from haiku.rag.storage.lancedb.live import LiveTables
from haiku.rag.storage.lancedb.schema import SETTINGS
from haiku.rag.storage.lancedb.tables import Tables, create_parts, open_generation


class Closing(Protocol):
    """Something to be closed."""

    async def close(self) -> None:
        """Release what it holds."""


CatchUp = Callable[[], Awaitable[None]]

CATCH_UP_SECONDS = SEAL_SECONDS / 2
"""Writers wait for so long at most while the last changes are made in the staged generation, too."""
CATCH_UP_TIMES = 5
"""A writer that had begun when the seal was put on commits once more before it waits."""
BY_REBUILD = "rebuild"
"""The job of a staged generation that a rebuild fills; restoring a tag stages one for a moment, too."""

D = TypeVar("D", bound=Closing)
Open = Callable[["Lent", Tables], D]


class Lent:
    """A connection that is closed by whoever opened it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def close(self) -> None:
        """Leave it open."""


class Staging(Generic[D]):
    """The staged generation of one database; `open_database` makes a database of open tables."""

    def __init__(self, connection: Any, live: LiveTables, open_database: Open[D]) -> None:
        self._connection = connection
        self._live = live
        self._open_database = open_database
        self._staged: Tables | None = None
        self._opened: list[D] = []

    async def job(self) -> str | None:
        """What a long operation has written down."""
        return (await settled_layout(self._live.tables.settings, self._live.ref)).job

    async def set_job(self, job: str | None) -> None:
        """Write it down; None gives up what is staged, too."""
        tables = await self._live.follow()
        async with sealed(tables.settings, self._live.ref) as seal:
            if job is None:
                await self._give_up(tables.settings, await self._all_staged(tables.settings))
            await change_layout(tables.settings, f"generation = {seal.generation}", {"job": job})

    async def staged(self, identity: EmbeddingIdentity, *, anew: bool) -> D:
        """The staged database: the one that was begun with the same identity, unless it is to be `anew`, or a new one.

        Its row comes before its tables, so that a number never stands for tables that were made for another embedding.
        """
        settings = (await self._live.follow()).settings
        async with sealed(settings, self._live.ref) as seal:
            begun = await self._all_staged(settings)
            own = [layout for layout in begun if layout.job == BY_REBUILD and layout.identity == identity]
            kept = [] if anew else own[:1]
            await self._give_up(settings, [layout for layout in begun if layout not in kept])
            layout = kept[0] if kept else await self._begin(settings, identity, seal.language)
        await create_parts(self._connection, layout)
        own_settings = await self._connection.open_table(SETTINGS)
        self._staged = await open_generation(self._connection, own_settings, layout)
        self._opened.append(self._open_database(Lent(self._connection), self._staged))
        return self._opened[-1]

    async def adopt(self, catch_up: CatchUp | None) -> bool:
        """Put the staged generation in place, unless its documents are not those of the current one."""
        if self._staged is None:
            raise StorageError(
                f"nothing is staged for database '{self._live.ref.name}'. Stage another embedding first.",
                source=self._live.ref.name,
            )
        tables = await self._live.follow()
        tried = catch_up is not None or await _same(tables, self._staged)
        adopted = tried and await self._exchange(tables, self._staged, catch_up)
        self._live.expire()
        if adopted:
            self._live.identity = self._staged.identity
            self._staged = None
            await self._live.follow()
        return adopted

    async def close(self) -> None:
        """Close every staged database."""
        for database in self._opened:
            await database.close()

    async def _exchange(self, tables: Tables, staged: Tables, catch_up: CatchUp | None) -> bool:
        settings, ref = tables.settings, self._live.ref
        async with sealed(settings, ref) as seal:
            # From now on no commit is acknowledged: what is seen here is all that has to be in the other.
            successor = [
                replace(layout, job=None)
                for layout in await self._all_staged(settings)
                if layout.generation == staged.layout.generation and seal.generation == tables.layout.generation
            ]
            if not successor or not await self._caught_up(tables, staged, catch_up):
                return False
            return await switch(settings, ref, seal, successor[0])

    async def _caught_up(self, tables: Tables, staged: Tables, catch_up: CatchUp | None) -> bool:
        """Whether the staged generation holds the documents, if need be after catching up."""
        if await _same(tables, staged):
            return True
        if catch_up is None:
            return False
        with anyio.move_on_after(CATCH_UP_SECONDS):
            for _ in range(CATCH_UP_TIMES):
                self._live.expire()
                await catch_up()
                if await _same(tables, staged):
                    return True
        return False

    async def _all_staged(self, settings: Any) -> list[Layout]:
        return [layout for layout in await layouts_now(settings, self._live.ref) if layout.state == "staged"]

    async def _begin(self, settings: Any, identity: EmbeddingIdentity, language: str | None) -> Layout:
        number = 1 + max(layout.generation for layout in await layouts_now(settings, self._live.ref))
        layout = replace(Layout.numbered(number, "staged", identity=identity, language=language), job=BY_REBUILD)
        await committed(settings, lambda: settings.add(layout_table(layout)))
        return layout

    async def _give_up(self, settings: Any, layouts: list[Layout]) -> None:
        for layout in layouts:
            condition = f"generation = {layout.generation} AND state = 'staged'"
            await change_layout(settings, condition, {"state": "old", "changed_at": datetime.now(UTC), "job": None})


async def _same(tables: Tables, staged: Tables) -> bool:
    """Whether two generations hold the same documents, as their ids and the moments of their last change tell."""
    return bool((await _moments(tables)).equals(await _moments(staged)))


async def _moments(tables: Tables) -> pa.Table:
    await tables.documents.checkout_latest()
    found = await tables.documents.query().select(["id", "updated_at"]).to_arrow()
    return found.sort_by("id").combine_chunks()
