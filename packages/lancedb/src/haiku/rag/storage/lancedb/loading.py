"""Reading the rows of a state, and their vectors, into memory."""

from functools import partial

import anyio
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from haiku.rag.storage.lancedb.legs import matrix
from haiku.rag.storage.lancedb.memory import Floats, VectorMemory
from haiku.rag.storage.lancedb.row_map import ROW_COLUMNS, ROW_ID, RowIds, RowMap, Rows
from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.tables import Tables

TAKEN_AT_MOST = 0.25
"""Up to this part of a table's vectors is taken row by row; beyond, all of them are read."""
POSITIONS = 1 << 32
"""More than a document has chunks."""


async def read_rows(tables: Tables, state: DocumentState) -> RowMap:
    """The live rows of the state at the version that the handle is at."""
    table = await tables.chunks.query().select(["id", "revision"]).with_row_id().to_arrow()
    return await anyio.to_thread.run_sync(RowMap, state, table)


async def read_memory(
    tables: Tables, state: DocumentState, old: tuple[DocumentState, VectorMemory] | None
) -> VectorMemory:
    """The rows and vectors of the state. What is in memory of an older one is not read again."""
    if old is not None:
        table = await tables.chunks.query().select(ROW_COLUMNS).with_row_id().to_arrow()
        rows, positions, known = await anyio.to_thread.run_sync(_known, table, state, *old)
        new = rows.row_ids[known < 0]
        if len(new) <= TAKEN_AT_MOST * len(rows):
            taken = await _taken(tables, new) if len(new) else None
            merge = partial(_merged, rows, positions, known, old=old[1], taken=taken)
            return await anyio.to_thread.run_sync(merge)
    table = await tables.chunks.query().select([*ROW_COLUMNS, "vector"]).with_row_id().to_arrow()
    return await anyio.to_thread.run_sync(_memory, table, state)


async def _taken(tables: Tables, row_ids: RowIds) -> pa.Table:
    query = tables.chunks.take_row_ids(row_ids.tolist()).select(["vector"])
    table: pa.Table = await query.with_row_id().to_arrow()
    return table


def _rows_and_positions(table: pa.Table, state: DocumentState) -> tuple[RowMap, Rows]:
    rows = RowMap(state, table)
    return rows, table["position"].to_numpy()[rows.source].astype(np.int64)


def _memory(table: pa.Table, state: DocumentState) -> VectorMemory:
    rows, positions = _rows_and_positions(table, state)
    vectors = matrix(table["vector"])
    return VectorMemory(rows, positions, vectors if rows.is_whole(len(vectors)) else vectors[rows.source])


def _known(
    table: pa.Table, state: DocumentState, old_state: DocumentState, old: VectorMemory
) -> tuple[RowMap, Rows, Rows]:
    """The rows, their positions, and where each was in the old memory, -1 where it was not.

    What makes a row the same at every version is its revision and its position there, and such a row never changes.
    """
    rows, positions = _rows_and_positions(table, state)
    numbers = pc.index_in(state.table["revision"], value_set=old_state.table["revision"].combine_chunks())
    now = _keys(rows, positions, pc.fill_null(numbers, -1).to_numpy().astype(np.int64))
    before = _keys(old.rows, old.positions, np.arange(len(old_state)))
    if not len(before):
        return rows, positions, np.full(len(now), -1)
    order = np.argsort(before)
    found = order[np.minimum(before.searchsorted(now, sorter=order), len(before) - 1)]
    return rows, positions, np.where(before[found] == now, found, -1)


def _keys(rows: RowMap, positions: Rows, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    keys: NDArray[np.int64] = numbers[rows.places] * POSITIONS + positions
    return keys


def _merged(rows: RowMap, positions: Rows, known: Rows, *, old: VectorMemory, taken: pa.Table | None) -> VectorMemory:
    if taken is None and np.array_equal(known, np.arange(len(old.vectors))):
        return VectorMemory(rows, positions, old.vectors)
    vectors: Floats = np.empty((len(rows), old.vectors.shape[1]), np.float32)
    kept = np.flatnonzero(known >= 0)
    vectors[kept] = old.vectors[known[kept]]
    if taken is not None:
        vectors[rows.find(taken[ROW_ID].to_numpy())] = matrix(taken["vector"])
    return VectorMemory(rows, positions, vectors)
