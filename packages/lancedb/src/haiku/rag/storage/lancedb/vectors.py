"""The vectors of one state of a database in memory: exact cosines without a scan of the table."""

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import anyio
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from haiku.rag.storage.lancedb.legs import Leg, matrix
from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.text import one_of

COLUMNS = ["id", "revision", "vector"]
FEW_REVISIONS = 500
"""Up to so many new revisions are asked for by name; beyond, the whole table is read."""
LARGE_BYTES = 32 << 20
SCANS_FIRST = 2
"""So many searches of one state scan a large table before its vectors are worth reading into memory."""
INLINE_VALUES = 4_000_000
"""A product over more values than these runs in a worker thread."""

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


def ratios(products: Doubles, norms: Doubles) -> Doubles:
    """Products over norms: cosines, 0 where either vector is zero."""
    cosines: Doubles = np.divide(products, norms, out=np.zeros(len(norms)), where=norms > 0)
    return cosines


class VectorMemory:
    """The chunks of the live revisions of one state, never changed once it is made.

    `places` holds the place of each row's document in the state.
    """

    def __init__(self, state: DocumentState, rows: pa.Table, vectors: Floats) -> None:
        places = pc.index_in(rows["revision"], value_set=pa.array(state.revisions, pa.string()))
        live = pc.is_valid(places)
        if not pc.all(live, min_count=0).as_py():
            rows, places = rows.filter(live), places.filter(live)
            vectors = vectors[live.to_numpy()]
        self.state = state
        self.rows = rows
        self.vectors = vectors
        self.norms: Doubles = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
        self.places: NDArray[np.int32] = places.to_numpy()

    @cached_property
    def row_by_id(self) -> dict[str, int]:
        """Where each chunk is."""
        return {chunk: row for row, chunk in enumerate(self.rows["id"].to_pylist())}

    def cosines(self, query: Floats) -> Doubles:
        """The cosine of every row to a query that is not zero; 0 where the row is. Blocking."""
        # A query of length 1 keeps the products within float32 however long the vectors are.
        direction = query.astype(np.float64) / np.linalg.norm(query.astype(np.float64))
        # Not `@`: its threads wait for each other while the keyword leg has the processors, which took 8 ms a database.
        products = np.einsum("ij,j->i", self.vectors, direction.astype(np.float32))
        return ratios(products.astype(np.float64), self.norms)

    def leg(self, cosines: Doubles, *, depth: int, places: NDArray[np.int64] | None) -> Leg:
        """The best rows of the selected documents, ties by id; rows without a direction are no candidates."""
        eligible = self.norms > 0
        if places is not None:
            chosen = np.zeros(len(self.state), bool)
            chosen[places] = True
            eligible &= chosen[self.places]
        rows = np.flatnonzero(eligible)
        if len(rows) > depth:
            # Every row that ties with the last place stays in, so that the ids decide between them.
            least = np.partition(cosines[rows], len(rows) - depth)[len(rows) - depth]
            rows = rows[cosines[rows] >= least]
        ids = dict(zip(rows.tolist(), self.rows["id"].take(pa.array(rows)).to_pylist(), strict=True))
        best = sorted(ids, key=lambda row: (-cosines[row], ids[row]))[:depth]
        return Leg(
            ids=[ids[row] for row in best],
            document_ids=[self.state.ids[self.places[row]] for row in best],
            scores=[float(cosines[row]) for row in best],
        )

    def rows_of(self, chunk_ids: Sequence[str]) -> list[int]:
        """Where these chunks are."""
        return [self.row_by_id[chunk] for chunk in chunk_ids]


class MemoryBudget:
    """How many bytes the vectors of all databases of one storage may take together."""

    def __init__(self, limit: int) -> None:
        self._free = limit

    def exchange(self, held: int, wanted: int) -> bool:
        """Give back what is held and take what is wanted; False, with nothing held any more, where it is too much."""
        self._free += held
        if wanted > self._free:
            return False
        self._free -= wanted
        return True


class VectorStore:
    """Holds the vectors of one database's newest state, as far as the budget allows."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._held = 0
        self._lock = asyncio.Lock()
        self._memory: VectorMemory | None = None
        self._state: DocumentState | None = None
        self._asked_for: DocumentState | None = None
        self._asked = 0

    async def memory(self, tables: Tables, state: DocumentState) -> VectorMemory | None:
        """The vectors of this state; None where the table has to be scanned.

        That is where they do not fit, and where there are many and few searches have yet asked for them: a process that
        searches once, or once after every write, is served sooner by a scan.
        """
        if self._state is state:
            return self._memory
        if state.chunk_count * tables.dimension * 4 > LARGE_BYTES and not self._is_worthwhile(state):
            return None
        async with self._lock:
            if self._state is not state:
                self._memory = await self._loaded(tables, state, self._memory)
                self._state = state
            return self._memory

    def _is_worthwhile(self, state: DocumentState) -> bool:
        if self._asked_for is not state:
            self._asked_for, self._asked = state, 0
        self._asked += 1
        return self._asked > SCANS_FIRST

    def release(self) -> None:
        """Forget the vectors."""
        self._memory = self._state = None
        self._budget.exchange(self._held, 0)
        self._held = 0

    async def _loaded(self, tables: Tables, state: DocumentState, old: VectorMemory | None) -> VectorMemory | None:
        wanted = state.chunk_count * tables.dimension * 4
        fits = self._budget.exchange(self._held, wanted)
        self._held = wanted if fits else 0
        if not fits:
            return None
        try:
            memory = await _load(tables, state, old)
        except BaseException:
            self.release()
            raise
        if memory.rows.num_rows != state.chunk_count:
            # Rows are missing or doubled: leave it to a scan to tell.
            self.release()
            return None
        return memory


async def _load(tables: Tables, state: DocumentState, old: VectorMemory | None) -> VectorMemory:
    known = set() if old is None else old.state.rows_by_revision.keys() & state.rows_by_revision.keys()
    new = [revision for revision in state.revisions if revision not in known]
    query = tables.chunks.query().select(COLUMNS)
    if old is None or len(new) > FEW_REVISIONS:
        return await anyio.to_thread.run_sync(_memory, state, None, await query.to_arrow())
    loaded = await query.where(one_of("revision", new)).to_arrow() if new else None
    return await anyio.to_thread.run_sync(_memory, state, old, loaded)


def _memory(state: DocumentState, old: VectorMemory | None, loaded: pa.Table | None) -> VectorMemory:
    if loaded is None:
        assert old is not None
        return VectorMemory(state, old.rows, old.vectors)
    rows, vectors = loaded.select(["id", "revision"]), matrix(loaded["vector"])
    if old is None:
        return VectorMemory(state, rows, vectors)
    return VectorMemory(state, pa.concat_tables([old.rows, rows]), np.concatenate([old.vectors, vectors]))


async def all_cosines(memory: VectorMemory, query: Any) -> Doubles:
    """The cosine of every row in memory, in a worker thread where there are many."""
    if memory.vectors.size <= INLINE_VALUES:
        return memory.cosines(query)
    return await anyio.to_thread.run_sync(memory.cosines, query)
