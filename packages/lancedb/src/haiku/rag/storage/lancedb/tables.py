"""The tables of one database: opened, created, and put at a tag."""

import asyncio
import re
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa

from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import HaikuRagError, StorageError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS
from haiku.rag.storage.lancedb.layout import PARTS, Layout, current_layout, layout_table, read_layouts, settings_lost
from haiku.rag.storage.lancedb.location import missing
from haiku.rag.storage.lancedb.schema import (
    CHUNKS,
    DATABASE_UID,
    DOCUMENTS,
    ITEMS,
    ITEMS_SCHEMA,
    PICTURES,
    PICTURES_SCHEMA,
    SETTINGS,
    chunks_schema,
    documents_schema,
)
from haiku.rag.storage.lancedb.table_tags import incomplete_tag, no_such_tag, tag_versions


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Open handles on one generation, and what the settings table says of it.

    `chunks_version` is the version that the handle on the chunks is at, where nobody moves it; 0 otherwise.
    """

    documents: Any
    chunks: Any
    items: Any
    pictures: Any
    settings: Any
    layout: Layout
    chunks_version: int = 0

    @property
    def identity(self) -> EmbeddingIdentity:
        """The embedding of the vectors."""
        return self.layout.identity

    @property
    def dimension(self) -> int:
        """Of the vectors."""
        return self.layout.identity.dimension

    @property
    def parts(self) -> tuple[Any, Any, Any, Any]:
        """The tables of a document's parts, the documents first."""
        return (self.documents, self.chunks, self.items, self.pictures)

    async def tagged(self, name: str) -> list[int | None]:
        """The versions of the parts that a tag is on, the documents first; None for a part without it."""
        return [(await tag_versions(table)).get(name) for table in self.parts]

    def close_parts(self) -> None:
        """Release the handles, except that on the settings."""
        for table in self.parts:
            table.close()

    async def checkout_latest(self) -> None:
        """Move the handles of a document's parts to their newest versions."""
        await asyncio.gather(*(table.checkout_latest() for table in (self.chunks, self.items, self.pictures)))

    def close(self) -> None:
        """Release the handles."""
        self.close_parts()
        self.settings.close()

    async def uid(self) -> bytes:
        """The mark of this database, another one once it has been re-created."""
        schema = await self.documents.schema()
        uid: bytes = (schema.metadata or {}).get(DATABASE_UID, b"")
        return uid


async def table_names(connection: Any) -> set[str]:
    """The names of all tables, page by page."""
    names: set[str] = set()
    token: str | None = None
    while True:
        page = await connection.list_tables(page_token=token)
        names.update(page.tables)
        token = page.page_token
        if not token:
            return names


async def _opened(connection: Any, name: str) -> Any:
    """The table; None where a creation that was broken off left its folder and nothing that can be opened."""
    try:
        return await connection.open_table(name)
    except ValueError as error:
        return _nothing_there(error)


def _nothing_there(error: ValueError) -> None:
    """Nothing for a table that is not there; any other failure is raised."""
    if "was not found" not in str(error):
        raise error


async def is_there(connection: Any, name: str) -> bool:
    """Whether a table can be opened: being listed is not enough."""
    table = await _opened(connection, name) if name in await table_names(connection) else None
    if table is not None:
        table.close()
    return table is not None


async def not_there(connection: Any, ref: DatabaseRef) -> HaikuRagError:
    """The error where no settings name a current generation: there is no database yet, or it has lost them."""
    return settings_lost(ref) if await _has_rows(connection) else missing(ref)


async def _has_rows(connection: Any) -> bool:
    """Whether a table of documents or their parts holds anything: a creation that was broken off leaves none."""
    for name in sorted(await table_names(connection)):
        if re.split("[-.]", name)[0] in PARTS and await _rows_of(connection, name):
            return True
    return False


async def _rows_of(connection: Any, name: str) -> int:
    table = await _opened(connection, name)
    return 0 if table is None else await _counted(table)


async def _counted(table: Any) -> int:
    try:
        rows: int = await table.count_rows()
    finally:
        table.close()
    return rows


async def open_tables(connection: Any, ref: DatabaseRef) -> Tables:
    """Open the current generation; `MissingDatabaseError` where there is no complete database."""
    settings = await _opened(connection, SETTINGS)
    layouts = [] if settings is None else await read_layouts(settings, ref)
    current = current_layout(layouts)
    if current is None:
        raise await not_there(connection, ref)
    if ref.tag is not None:
        return await _open_at_tag(connection, settings, layouts, ref)
    return await open_generation(connection, settings, current)


async def open_generations(connection: Any, settings: Any, layouts: list[Layout]) -> list[Tables]:
    """Open every generation, the current one first, then newer before older; without those that are being dropped."""
    current = current_layout(layouts)
    opened = [] if current is None else [await open_generation(connection, settings, current)]
    for layout in reversed(layouts):
        tables = None if layout is current else await _opened_if_there(connection, settings, layout)
        opened += [] if tables is None else [tables]
    return opened


async def _opened_if_there(connection: Any, settings: Any, layout: Layout) -> Any:
    """The tables of a generation; None where one is gone."""
    try:
        return await open_generation(connection, settings, layout)
    except ValueError as error:
        return _nothing_there(error)


async def _open_at_tag(connection: Any, settings: Any, layouts: list[Layout], ref: DatabaseRef) -> Tables:
    """The newest generation that has the tag whole, with its handles there; `TagError` where none has."""
    assert ref.tag is not None
    found: Tables | None = None
    begun = False
    for tables in await open_generations(connection, settings, layouts):
        versions = await tables.tagged(ref.tag) if found is None else []
        if versions and None not in versions:
            await asyncio.gather(
                *(table.checkout(version) for table, version in zip(tables.parts, versions, strict=True))
            )
            found = tables
        else:
            begun = begun or any(versions)
            tables.close_parts()
    if found is None:
        raise incomplete_tag(ref, ref.tag) if begun else no_such_tag(ref, ref.tag)
    return found


async def open_generation(connection: Any, settings: Any, layout: Layout) -> Tables:
    """Open the tables of one generation."""
    names = [layout.tables[part] for part in (DOCUMENTS, CHUNKS, ITEMS, PICTURES)]
    documents, chunks, items, pictures = await asyncio.gather(*map(connection.open_table, names))
    return Tables(documents=documents, chunks=chunks, items=items, pictures=pictures, settings=settings, layout=layout)


async def create_tables(
    connection: Any, ref: DatabaseRef, identity: EmbeddingIdentity | None, *, language: str | None
) -> None:
    """Create what is not there yet. The settings come last, and without them there is no database.

    `StorageError` over documents whose settings are lost: new ones would not be theirs.
    """
    if identity is None:
        raise StorageError(
            f"database '{ref.name}' cannot be created without an embedding: its dimension has to be known.",
            source=ref.name,
        )
    if await _has_rows(connection):
        if await is_there(connection, SETTINGS):
            return  # another process was first, and has written already
        raise settings_lost(ref)
    layout = Layout.numbered(0, "current", identity=identity, language=language)
    await create_parts(connection, layout)
    await _create(connection, SETTINGS, data=layout_table(layout))


async def create_parts(connection: Any, layout: Layout) -> None:
    """Create the tables of a generation that are not there yet."""
    schemas: dict[str, pa.Schema] = {
        DOCUMENTS: documents_schema(uuid4().hex),
        CHUNKS: chunks_schema(layout.identity.dimension),
        ITEMS: ITEMS_SCHEMA,
        PICTURES: PICTURES_SCHEMA,
    }
    for part, schema in schemas.items():
        await _create(connection, layout.tables[part], schema=schema)


async def _create(connection: Any, name: str, **content: Any) -> None:
    try:
        await connection.create_table(name, **content)
    except ENGINE_ERRORS:
        # Another process was first, or an earlier creation was broken off after this table: what is there serves.
        if not await is_there(connection, name):
            raise
