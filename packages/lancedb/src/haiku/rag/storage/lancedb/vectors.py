"""What of one database's chunks is held in memory: where its live rows are, and their vectors."""

import asyncio
from dataclasses import dataclass

from haiku.rag.storage.lancedb.budget import MemoryBudget
from haiku.rag.storage.lancedb.failures import STEP_ERRORS
from haiku.rag.storage.lancedb.loading import read_memory, read_rows
from haiku.rag.storage.lancedb.memory import VectorMemory
from haiku.rag.storage.lancedb.row_map import BYTES_A_ROW, RowMap
from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.vector_index import VECTOR_INDEX

LARGE_BYTES = 32 << 20
SCANS_FIRST = 2
"""So many searches of one state ask a large table before its rows are worth reading into memory."""
ASKED_OF_INDEX = 20
"""So many do before its vectors are, where an index covers them: it is as fast, but takes the processors of others."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """What is in memory of one state at one version of the chunks table.

    `rows` and `memory` are None where they are not; with `tried` there is no use in trying again, and with `indexed`
    the vectors can wait.
    """

    state: DocumentState
    version: int
    rows: RowMap | None = None
    memory: VectorMemory | None = None
    tried: bool = False
    indexed: bool = False

    def is_of(self, tables: Tables, state: DocumentState) -> bool:
        """Whether this is of just that state and version."""
        return self.state is state and self.version == tables.chunks_version

    def serves(self, tables: Tables, state: DocumentState, *, vectors: bool) -> bool:
        """Whether this is of just that state and version, and all that is wanted or can be had."""
        return self.is_of(tables, state) and (self.tried or (not vectors and self.rows is not None))


class VectorStore:
    """Holds the newest state's rows and vectors of one database, as far as the budget allows.

    Few vectors are read when they are first wanted. Rows alone, and many vectors, are read once a few searches of a
    state have asked for them, the latter beside the searches, which go to the table until then: a process that
    searches once, or once after every write, is served sooner so. Vectors that an index covers are the last to be read.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._taken = 0
        self._lock = asyncio.Lock()
        self._held: Held | None = None
        self._loading: asyncio.Task[None] | None = None
        self._asked_for: tuple[DocumentState, int] | None = None
        self._asked = 0

    async def held(self, tables: Tables, state: DocumentState, *, vectors: bool) -> Held:
        """What there is in memory for a search of this state, with the vectors where they are wanted."""
        held = self._held
        if held is not None and held.serves(tables, state, vectors=vectors):
            return held
        worthwhile = self._is_worthwhile(tables, state)
        if vectors and _vector_bytes(tables, state) <= LARGE_BYTES:
            return await self._loaded(tables, state, vectors=True)
        if vectors and worthwhile:
            if held is None or not held.is_of(tables, state) or not held.indexed or self._asked > ASKED_OF_INDEX:
                self._load_beside(tables, state)
        elif worthwhile and not self._lock.locked():
            return await self._loaded(tables, state, vectors=False)
        if held is not None and held.is_of(tables, state):
            return held
        return Held(state=state, version=tables.chunks_version)

    async def close(self) -> None:
        """Stop reading, and forget everything."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        self._forget()

    def _forget(self) -> None:
        self._held = None
        self._budget.exchange(self._taken, 0)
        self._taken = 0

    def _is_worthwhile(self, tables: Tables, state: DocumentState) -> bool:
        if self._asked_for != (state, tables.chunks_version):
            self._asked_for, self._asked = (state, tables.chunks_version), 0
        self._asked += 1
        return self._asked > SCANS_FIRST

    def _load_beside(self, tables: Tables, state: DocumentState) -> None:
        if self._loading is None or self._loading.done():
            self._loading = asyncio.get_running_loop().create_task(self._try_to_load(tables, state))

    async def _try_to_load(self, tables: Tables, state: DocumentState) -> None:
        try:
            await self._loaded(tables, state, vectors=True)
        except STEP_ERRORS:
            # The searches ask the table meanwhile: where that fails as well, they say so.
            self._forget()

    async def _loaded(self, tables: Tables, state: DocumentState, *, vectors: bool) -> Held:
        async with self._lock:
            if self._held is None or not self._held.serves(tables, state, vectors=vectors):
                old, self._held = self._held, None
                try:
                    self._held = await self._read(tables, state, old, vectors=vectors)
                except BaseException:
                    self._forget()
                    raise
            return self._held

    async def _read(self, tables: Tables, state: DocumentState, old: Held | None, *, vectors: bool) -> Held:
        nothing = Held(state=state, version=tables.chunks_version, tried=True)
        row_bytes = state.chunk_count * BYTES_A_ROW
        memory = None
        indexed = vectors and self._asked <= ASKED_OF_INDEX and await _is_indexed(tables, state)
        if vectors and not indexed and self._take(row_bytes + _vector_bytes(tables, state)):
            known = None if old is None or old.memory is None else (old.state, old.memory)
            memory = await read_memory(tables, state, known)
            rows = memory.rows
        elif self._take(row_bytes):
            rows = await read_rows(tables, state)
        else:
            return nothing
        if len(rows) != state.chunk_count:
            # Rows are missing or doubled: leave it to the table to tell.
            self._forget()
            return nothing
        tried = vectors and not indexed
        return Held(state=state, version=tables.chunks_version, rows=rows, memory=memory, tried=tried, indexed=indexed)

    def _take(self, wanted: int) -> bool:
        fits = self._budget.exchange(self._taken, wanted)
        self._taken = wanted if fits else 0
        return fits


async def _is_indexed(tables: Tables, state: DocumentState) -> bool:
    if _vector_bytes(tables, state) <= LARGE_BYTES:
        return False
    stats = await tables.chunks.index_stats(VECTOR_INDEX)
    return stats is not None and stats.num_unindexed_rows * tables.dimension * 4 <= LARGE_BYTES


def _vector_bytes(tables: Tables, state: DocumentState) -> int:
    return state.chunk_count * tables.dimension * 4
