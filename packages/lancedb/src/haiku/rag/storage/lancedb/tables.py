"""The tables of one database: opened, created, and put at a tag."""

import asyncio
import json
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa

from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import MigrationRequiredError, StorageError, TagError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS
from haiku.rag.storage.lancedb.location import missing
from haiku.rag.storage.lancedb.schema import (
    CHUNKS,
    DATABASE_UID,
    DOCUMENTS,
    ITEMS,
    ITEMS_SCHEMA,
    METRIC,
    PICTURES,
    PICTURES_SCHEMA,
    SCHEMA_VERSION,
    SETTINGS,
    SETTINGS_SCHEMA,
    chunks_schema,
    documents_schema,
)


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Open handles, and what the settings table says."""

    documents: Any
    chunks: Any
    items: Any
    pictures: Any
    identity: EmbeddingIdentity
    dimension: int

    async def checkout_latest(self) -> None:
        """Move the handles of a document's parts to their newest versions."""
        await asyncio.gather(*(table.checkout_latest() for table in (self.chunks, self.items, self.pictures)))

    async def checkout_tag(self, ref: DatabaseRef) -> None:
        """Move every handle to the tag that the reference names; `TagError` where a table does not have it."""
        handles = (self.documents, self.chunks, self.items, self.pictures)
        for table in handles:
            if ref.tag not in await table.tags.list():
                raise TagError(f"database '{ref.name}' has no tag '{ref.tag}'.", source=ref.name)
        await asyncio.gather(*(table.checkout(ref.tag) for table in handles))

    def close(self) -> None:
        """Release the handles."""
        for table in (self.documents, self.chunks, self.items, self.pictures):
            table.close()

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


def _required(table: Any, ref: DatabaseRef) -> Any:
    """The table; `MissingDatabaseError` without one."""
    if table is None:
        raise missing(ref)
    return table


async def is_there(connection: Any, name: str) -> bool:
    """Whether a table can be opened: being listed is not enough."""
    table = await _opened(connection, name) if name in await table_names(connection) else None
    if table is not None:
        table.close()
    return table is not None


async def open_tables(connection: Any, ref: DatabaseRef) -> Tables:
    """Open the tables; `MissingDatabaseError` where there is no complete database."""
    names = (DOCUMENTS, CHUNKS, ITEMS, PICTURES)
    if not {*names, SETTINGS} <= await table_names(connection):
        raise missing(ref)
    settings = _required(await _opened(connection, SETTINGS), ref)
    documents, chunks, items, pictures = await asyncio.gather(*map(connection.open_table, names))
    rows = (await settings.query().to_arrow()).to_pylist()
    settings.close()
    if not rows:
        raise missing(ref)
    _check_version(rows[0]["schema_version"], ref)
    tables = Tables(
        documents=documents,
        chunks=chunks,
        items=items,
        pictures=pictures,
        identity=EmbeddingIdentity(**json.loads(rows[0]["identity"])),
        dimension=(await chunks.schema()).field("vector").type.list_size,
    )
    if ref.tag is not None:
        await tables.checkout_tag(ref)
    return tables


def _check_version(version: int, ref: DatabaseRef) -> None:
    if version == SCHEMA_VERSION:
        return
    how = "Migrate it" if version < SCHEMA_VERSION else "Upgrade haiku-rag-lancedb"
    raise MigrationRequiredError(
        f"database '{ref.name}' has schema version {version}, and this version of haiku-rag-lancedb reads "
        f"{SCHEMA_VERSION}. {how} before you use it.",
        source=ref.name,
    )


async def create_tables(connection: Any, ref: DatabaseRef, identity: EmbeddingIdentity | None) -> None:
    """Create what is not there yet. The settings come last, and without them there is no database."""
    if identity is None:
        raise StorageError(
            f"database '{ref.name}' cannot be created without an embedding: its dimension has to be known.",
            source=ref.name,
        )
    schemas = {
        DOCUMENTS: documents_schema(uuid4().hex),
        CHUNKS: chunks_schema(identity.dimension),
        ITEMS: ITEMS_SCHEMA,
        PICTURES: PICTURES_SCHEMA,
    }
    for name, schema in schemas.items():
        await _create(connection, name, schema=schema)
    row = {"schema_version": SCHEMA_VERSION, "identity": json.dumps(asdict(identity)), "metric": METRIC}
    await _create(connection, SETTINGS, data=pa.Table.from_pylist([row], schema=SETTINGS_SCHEMA))


async def _create(connection: Any, name: str, **content: Any) -> None:
    try:
        await connection.create_table(name, **content)
    except ENGINE_ERRORS:
        # Another process was first, or an earlier creation was broken off after this table: what is there serves.
        if not await is_there(connection, name):
            raise
