"""Bringing the state of a tag back."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
import pyarrow as pa
import pyarrow.compute as pc

from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import StorageError
from haiku.rag.storage.lancedb.commits import committed
from haiku.rag.storage.lancedb.generations import change_layout, sealed, switch
from haiku.rag.storage.lancedb.live import LiveTables
from haiku.rag.storage.lancedb.rows import new_revision
from haiku.rag.storage.lancedb.schema import STATE_COLUMNS
from haiku.rag.storage.lancedb.tables import Tables, open_generation, open_tables
from haiku.rag.storage.lancedb.tags import Tags
from haiku.rag.storage.lancedb.text import one_of
from haiku.rag.storage.lancedb.upkeep import Upkeep
from haiku.rag.storage.lancedb.writing import Writer, append, check_age, upsert

BATCH_BYTES = 32 << 20
ROWS_AT_ONCE = (1024, 1024, 16)
"""So many rows are read at a time, of chunks, items and pictures: a picture may have megabytes."""
NAMED_REVISIONS = 2000
"""Up to so many revisions are asked for by name; beyond, a table is read through."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What has to change for the documents to be as they were.

    `revisions` maps those of the rows to write to fresh ones, `replaced` are those of the rows that give way. A fresh
    revision is left alone by upkeep until it is committed; the tag's own may have lost rows to it, or lose them.
    """

    revisions: Mapping[str, str]
    ids: list[str]
    gone: list[str]
    replaced: list[str]

    @property
    def is_empty(self) -> bool:
        """Whether the documents are as they were."""
        return not self.revisions and not self.gone


class Restorer:
    """Restores tags of one database.

    Documents that are as they were at the tag, with all of their chunks, stay untouched. The others are written again,
    parts first and under a fresh revision, and one commit of the documents puts them in place and removes what the tag
    did not have.
    """

    def __init__(self, connection: Any, live: LiveTables, writer: Writer, upkeep: Upkeep) -> None:
        self._connection = connection
        self._live = live
        self._writer = writer
        self._upkeep = upkeep
        self._ref = live.ref
        self._tags = Tags(connection, live.ref)

    async def restore(self, name: str) -> str:
        """Make the tag's state the current one; gives the tag that was put on the state before."""
        then = await open_tables(self._connection, replace(self._ref, tag=name))
        try:
            before = f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
            await self._tags.create(before)
            if await self._is_current(then):
                await self._writer.counted(partial(self._bring_back, then))
            else:
                await self._change_generation(then)
        finally:
            then.close()
        return before

    async def _is_current(self, then: Tables) -> bool:
        return (await self._live.follow()).layout.generation == then.layout.generation

    async def _bring_back(self, then: Tables, now: Tables) -> None:
        if now.layout.generation != then.layout.generation:
            raise _changed_meanwhile(self._ref)
        difference = await _difference(then, now)
        if difference.is_empty:
            return
        for source, target, rows in zip(then.parts[1:], now.parts[1:], ROWS_AT_ONCE, strict=True):
            await _copy(source, target, difference.revisions, rows=rows)
        await self._commit(then, now, difference)
        self._upkeep.note_superseded(difference.replaced)

    async def _commit(self, then: Tables, now: Tables, difference: Difference) -> None:
        found = then.documents.query()
        if len(difference.revisions) <= NAMED_REVISIONS:
            found = found.where(one_of("revision", difference.revisions or [""]))
        rows = _renamed(await found.to_arrow(), difference.revisions)
        oldest = next(iter(difference.revisions.values()), None)
        # A document that has meanwhile moved to another URI is not to be there twice.
        conditions = [one_of("key", difference.gone)] if difference.gone else []
        conditions += [one_of("id", difference.ids)] if difference.ids else []

        async def merge() -> None:
            check_age(oldest, self._ref.name)
            merging = upsert(now.documents).when_not_matched_by_source_delete(" OR ".join(conditions))
            await merging.execute(rows)

        await committed(now.documents, merge)

    async def _change_generation(self, then: Tables) -> None:
        """Bring the state back in the older tables, which nobody reads, and make these the current ones."""
        settings, layout = then.settings, then.layout
        now = await open_generation(self._connection, settings, layout)
        try:
            await self._bring_back(then, now)
        finally:
            now.close_parts()
        which = f"generation = {layout.generation} AND state "
        async with sealed(settings, self._ref) as seal:
            # Where a restore was killed just here, it is staged already.
            staged = await change_layout(settings, f"{which} IN ('old', 'staged')", {"state": "staged"})
            if not staged or not await switch(settings, self._ref, seal, replace(layout, state="staged")):
                await change_layout(settings, f"{which} = 'staged'", {"state": "old"})
                raise _changed_meanwhile(self._ref)
        self._live.expire()


async def _difference(then: Tables, now: Tables) -> Difference:
    await now.documents.checkout_latest()
    old, new = [await _rows_by_key(tables.documents) for tables in (then, now)]
    short = await _short_of_chunks(new.values(), now.chunks)
    written = {key: row for key, row in old.items() if new.get(key) != row or row["revision"] in short}
    gone = [key for key in new if key not in old]
    made = time.time_ns()
    return Difference(
        revisions={row["revision"]: new_revision(made) for row in written.values()},
        ids=[row["id"] for row in written.values()],
        gone=gone,
        replaced=[new[key]["revision"] for key in (*gone, *written) if key in new],
    )


async def _short_of_chunks(rows: Iterable[Mapping[str, Any]], chunks: Any) -> set[str]:
    """The revisions that have lost chunks, so that whoever restores a tag over damage gets them back."""
    await chunks.checkout_latest()
    found = (await chunks.query().select(["revision"]).to_arrow())["revision"].value_counts()
    there = dict(zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True))
    return {row["revision"] for row in rows if there.get(row["revision"], 0) < row["chunk_count"]}


async def _rows_by_key(documents: Any) -> dict[str, dict[str, Any]]:
    found = await documents.query().select(STATE_COLUMNS).to_arrow()
    rows = await anyio.to_thread.run_sync(found.to_pylist)
    return {row["key"]: row for row in rows}


async def _copy(source: Any, target: Any, revisions: Mapping[str, str], *, rows: int) -> None:
    """Append the rows of some revisions under other names, a bounded number of bytes at a time."""
    if not revisions:
        return
    query = source.query()
    if len(revisions) <= NAMED_REVISIONS:
        query = query.where(one_of("revision", revisions))
    held: list[pa.RecordBatch] = []
    size = 0
    async for batch in await query.to_batches(max_batch_length=rows):
        held.append(batch)
        size += batch.nbytes
        if size >= BATCH_BYTES:
            await _append_renamed(target, held, revisions)
            held, size = [], 0
    await _append_renamed(target, held, revisions)


async def _append_renamed(target: Any, batches: list[pa.RecordBatch], revisions: Mapping[str, str]) -> None:
    rows = _renamed(pa.Table.from_batches(batches), revisions) if batches else None
    if rows is not None and rows.num_rows:
        await append(target, rows)


def _renamed(rows: pa.Table, revisions: Mapping[str, str]) -> pa.Table:
    """The rows of these revisions, under their other names."""
    places = pc.index_in(rows["revision"], value_set=pa.array(revisions, pa.string()))
    fresh = pa.array(revisions.values(), pa.string()).take(places.combine_chunks())
    column = rows.schema.get_field_index("revision")
    kept = rows.set_column(column, rows.schema.field(column), pa.chunked_array([fresh]))
    return kept.filter(pc.is_valid(places))


def _changed_meanwhile(ref: DatabaseRef) -> StorageError:
    return StorageError(
        f"database '{ref.name}' was rebuilt or restored by another process meanwhile. Look at it, and restore the tag "
        "again if it is still wanted.",
        source=ref.name,
    )
