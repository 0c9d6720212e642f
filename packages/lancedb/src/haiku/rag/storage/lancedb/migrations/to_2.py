"""Schema version 2: code identifiers beside the text of chunks, and settings with a row for each generation of tables.

Version 1 had one row of settings (`schema_version`, `identity`, `metric`) and chunks without `identifiers`.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import anyio
import pyarrow as pa
import pyarrow.compute as pc

from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS, is_conflict
from haiku.rag.storage.lancedb.table_tags import tag_versions
from haiku.rag.storage.lancedb.tables import table_names
from haiku.rag.storage.lancedb.text import identifiers, searchable

Prepare = Callable[[Any], Awaitable[None]]

SUMMARY = "Code identifiers such as C++ are found in full text; a language, and tables that a rebuild can replace."

DOCUMENTS, CHUNKS, ITEMS, PICTURES, SETTINGS = "documents", "chunks", "items", "pictures", "settings"
FILLED = re.compile(r"chunks\.v2-[0-9a-f]{12}")
ABANDONED_AFTER = timedelta(hours=1)
BATCH_BYTES = 32 << 20
ROWS_AT_ONCE = 1024

SETTINGS_SCHEMA = pa.schema(
    [
        pa.field("generation", pa.int32(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("identity", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("language", pa.string()),
        pa.field("tables", pa.string(), nullable=False),
        pa.field("changed_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("job", pa.string()),
        pa.field("upkeep", pa.string()),
    ]
)


def chunks_schema(dimension: int) -> pa.Schema:
    """The chunks of version 2."""
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("document_id", pa.string(), nullable=False),
            pa.field("revision", pa.string(), nullable=False),
            pa.field("position", pa.int32(), nullable=False),
            pa.field("content", pa.large_string(), nullable=False),
            pa.field("text", pa.large_string(), nullable=False),
            pa.field("identifiers", pa.large_string(), nullable=False),
            pa.field("details", pa.string(), nullable=False),
            pa.field("vector", pa.list_(pa.float32(), dimension), nullable=False),
        ]
    )


async def run(connection: Any, prepare: Prepare) -> None:
    """Fill a new table of chunks, then overwrite the settings, which is the commit.

    Documents, items and pictures stay where they are. Tags stay too: the new table holds the chunks of every revision
    that a tag names, and gets the tags. Killed before the commit, the database is as it was.
    """
    names = (DOCUMENTS, CHUNKS, ITEMS, PICTURES)
    tables = [await connection.open_table(name) for name in names]
    dimension = (await tables[1].schema()).field("vector").type.list_size
    name = f"{CHUNKS}.v2-{uuid4().hex[:12]}"
    filled = await connection.create_table(name, schema=chunks_schema(dimension))
    committed_to = False
    copied: set[str] = set()
    try:
        await _fill(filled, tables, prepare, copied)
        committed_to = await _switch(connection, name)
        if committed_to:
            # Once more, for what a process of version 1 committed while the settings were written.
            await _copy_newest(tables[0], tables[1], filled, copied)
    finally:
        for table in (*tables, filled):
            table.close()
        if not committed_to:
            with anyio.CancelScope(shield=True):
                await connection.drop_table(name, ignore_missing=True)


async def _fill(filled: Any, tables: Sequence[Any], prepare: Prepare, copied: set[str]) -> None:
    documents, chunks = tables[:2]
    tags = [await tag_versions(table) for table in tables]
    whole = [name for name in tags[0] if all(name in tagged for tagged in tags)]
    for tag in whole:
        await documents.checkout(tags[0][tag])
        await chunks.checkout(tags[1][tag])
        await _copy(documents, chunks, filled, copied)
    await _copy_newest(documents, chunks, filled, copied)
    await prepare(filled)
    await _copy_newest(documents, chunks, filled, copied)
    for tag in whole:
        await filled.tags.create(tag, await filled.version())


async def _switch(connection: Any, chunks: str) -> bool:
    """Overwrite the settings; False where another process has been first."""
    row = await _settings_row(connection)
    if row["schema_version"] != 1:
        return False
    try:
        (await connection.create_table(SETTINGS, data=_settings(row, chunks), mode="overwrite")).close()
    except ENGINE_ERRORS as error:
        return await _is_second(connection, error)
    return True


async def _is_second(connection: Any, error: Exception) -> bool:
    """False where the engine refused the settings because another process has been first."""
    if is_conflict(error) and (await _settings_row(connection))["schema_version"] != 1:
        return False
    raise error


async def _settings_row(connection: Any) -> dict[str, Any]:
    settings = await connection.open_table(SETTINGS)
    rows = (await settings.query().to_arrow()).to_pylist()
    settings.close()
    row: dict[str, Any] = rows[0]
    return row


async def sweep(connection: Any) -> None:
    """Drop the chunks of version 1, and tables that runs have left over which have long been dead."""
    settings = await connection.open_table(SETTINGS)
    rows = (await settings.query().to_arrow()).to_pylist()
    settings.close()
    used = {name for row in rows for name in json.loads(row["tables"]).values()}
    for name in await table_names(connection) - used:
        if name == CHUNKS or (FILLED.fullmatch(name) and await _is_abandoned(connection, name)):
            await _drop(connection, name)


async def _drop(connection: Any, name: str) -> None:
    try:
        await connection.drop_table(name, ignore_missing=True)
    except ENGINE_ERRORS:
        # Another run may be dropping it as well: then it is gone all the same.
        if name in await table_names(connection):
            raise


async def _is_abandoned(connection: Any, name: str) -> bool:
    try:
        table = await connection.open_table(name)
        moments = [entry["timestamp"] for entry in await table.list_versions()]
    except ENGINE_ERRORS:
        # Its own run is making it or dropping it.
        return False
    table.close()
    return bool(moments) and bool(max(moments).astimezone(UTC) < datetime.now(UTC) - ABANDONED_AFTER)


async def _copy_newest(documents: Any, chunks: Any, filled: Any, copied: set[str]) -> None:
    """Copy until no document has changed meanwhile."""
    await documents.checkout_latest()
    while True:
        version = await documents.version()
        await chunks.checkout_latest()
        await _copy(documents, chunks, filled, copied)
        await documents.checkout_latest()
        if await documents.version() == version:
            return


async def _copy(documents: Any, chunks: Any, filled: Any, copied: set[str]) -> None:
    """Copy the chunks of the documents' revisions that are not there yet."""
    found = await documents.query().select(["revision"]).to_arrow()
    wanted = set(found["revision"].to_pylist()) - copied
    if not wanted:
        return
    schema = await filled.schema()
    names = pa.array(wanted, pa.string())
    held: list[pa.Table] = []
    async for batch in await chunks.query().to_batches(max_batch_length=ROWS_AT_ONCE):
        rows = pa.Table.from_batches([batch])
        held.append(rows.filter(pc.is_in(rows["revision"], value_set=names)))
        if sum(rows.nbytes for rows in held) >= BATCH_BYTES:
            await _append(filled, held, schema)
            held = []
    if held:
        await _append(filled, held, schema)
    copied |= wanted


async def _append(filled: Any, held: Iterable[pa.Table], schema: pa.Schema) -> None:
    rows = await anyio.to_thread.run_sync(_converted, pa.concat_tables(held), schema)
    if rows.num_rows:
        await committed(filled, lambda: filled.add(rows))


def _converted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Chunks of version 1 as those of version 2. Blocking."""
    pairs = zip(rows["details"].to_pylist(), rows["content"].to_pylist(), strict=True)
    texts = ["\n".join([*json.loads(details)["headings"], content]) for details, content in pairs]
    columns = {
        "text": pa.array(map(searchable, texts), pa.large_string()),
        "identifiers": pa.array(map(identifiers, texts), pa.large_string()),
    }
    arrays = [columns[name] if name in columns else rows[name] for name in schema.names]
    return pa.Table.from_arrays(arrays, schema=schema)


def _settings(row: dict[str, Any], chunks: str) -> pa.Table:
    """The settings of version 2 for a database that had this row of version 1."""
    tables = {DOCUMENTS: DOCUMENTS, CHUNKS: chunks, ITEMS: ITEMS, PICTURES: PICTURES}
    new = {
        "generation": 0,
        "state": "current",
        "schema_version": 2,
        "identity": row["identity"],
        "metric": row["metric"],
        "tables": json.dumps(tables),
        "changed_at": datetime.now(UTC),
    }
    return pa.Table.from_pylist([new], schema=SETTINGS_SCHEMA)
