"""Which indexes a database has: each is built once there are rows, and built again as more come."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.garbage import PATIENCE_SECONDS
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.text_index import (
    IDENTIFIERS_INDEX,
    TEXT_INDEX,
    TEXT_INDEXES,
    build_text_indexes,
    unfit_indexes,
)
from haiku.rag.storage.lancedb.vector_index import VECTOR_INDEX, build_vector_index, is_outgrown, is_worthwhile

FIRST = (TEXT_INDEX, VECTOR_INDEX, IDENTIFIERS_INDEX)
MANY_DOCUMENTS = 10_000
"""Fewer documents are looked up by a scan in a millisecond or two."""
SMALL_ROWS = 2_000
"""The indexes of a table with no more rows are built again whenever one row is not covered: that takes no time."""


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """An index on a column whose values are looked up. Never the documents' key: two writers could both insert it."""

    table: Any
    column: str
    least_rows: int = 1

    @property
    def name(self) -> str:
        """What the engine calls it."""
        return f"{self.column}_idx"

    async def has_rows(self) -> bool:
        """Whether there are enough rows for it."""
        await self.table.checkout_latest()
        rows: int = await self.table.count_rows()
        return rows >= self.least_rows

    async def is_missing(self) -> bool:
        """Whether it is yet to be built."""
        return await self.has_rows() and self.name not in await index_names(self.table)

    async def build(self) -> None:
        """Build it, or build it again."""
        from lancedb.index import BTree

        async def create() -> None:
            await self.table.create_index(self.column, config=BTree(), replace=True, name=self.name)

        await committed(self.table, create, patience=PATIENCE_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Lag:
    """An index that does not cover all rows: searches read the others one by one. `build` builds it again."""

    table: Any
    index: str
    uncovered: int
    rows: int
    build: Callable[[], Awaitable[None]]

    def is_worth_it(self, least: int, share: float) -> bool:
        """Whether building it again is in proportion to what it then covers."""
        return self.rows <= SMALL_ROWS or self.uncovered >= max(least, share * self.rows)


def lookups(tables: Tables) -> list[Lookup]:
    """The indexes for looking up."""
    return [
        Lookup(table=tables.chunks, column="id"),
        Lookup(table=tables.chunks, column="revision"),
        Lookup(table=tables.items, column="revision"),
        Lookup(table=tables.pictures, column="revision"),
        Lookup(table=tables.documents, column="id", least_rows=MANY_DOCUMENTS),
    ]


async def index_names(table: Any) -> set[str]:
    """The names of a table's indexes."""
    return {index.name for index in await table.list_indices()}


async def unfit_text_indexes(tables: Tables) -> list[str]:
    """The full-text indexes that are missing or configured otherwise; none where there is no text."""
    await tables.chunks.checkout_latest()
    return await unfit_indexes(tables.chunks, tables.layout.language) if await tables.chunks.count_rows() else []


async def build_text(tables: Tables, *names: str, language: str | None) -> None:
    """Build these full-text indexes, or build them again."""
    await build_text_indexes(tables.chunks, language, names=names, patience=PATIENCE_SECONDS)


async def lacks_vector_index(tables: Tables) -> bool:
    """Whether there are so many vectors that an index is worthwhile, and none is there or one that was outgrown."""
    await tables.chunks.checkout_latest()
    if VECTOR_INDEX in await index_names(tables.chunks):
        return is_outgrown(await tables.chunks.index_stats(VECTOR_INDEX))
    return is_worthwhile(await tables.chunks.count_rows(), tables.dimension)


async def build_vectors(tables: Tables) -> None:
    """Build the vector index, or build it again."""
    await committed(tables.chunks, lambda: build_vector_index(tables.chunks), patience=PATIENCE_SECONDS)


async def lags(tables: Tables) -> list[Lag]:
    """The indexes that do not cover all rows, those first that searches miss most."""
    builders = {(lookup.table.name, lookup.name): lookup.build for lookup in lookups(tables)} | {
        (tables.chunks.name, VECTOR_INDEX): partial(build_vectors, tables)
    }
    for name in TEXT_INDEXES:
        builders[tables.chunks.name, name] = partial(build_text, tables, name, language=tables.layout.language)
    found = []
    for table in tables.parts:
        await table.checkout_latest()
        rows = await table.count_rows()
        found += [
            Lag(
                table=table,
                index=index.name,
                uncovered=index.num_unindexed_rows,
                rows=rows,
                build=builders[table.name, index.name],
            )
            for index in await table.list_indices()
            if index.num_unindexed_rows and (table.name, index.name) in builders
        ]
    return sorted(found, key=lambda lag: FIRST.index(lag.index) if lag.index in FIRST else len(FIRST))
