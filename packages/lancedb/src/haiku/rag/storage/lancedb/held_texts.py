"""The texts of a small database's chunks in memory: what survives a search is then shown without asking the engine."""

from typing import Any

import numpy as np
import pyarrow as pa

from haiku.rag.storage.lancedb.budget import MemoryBudget
from haiku.rag.storage.lancedb.row_map import ROW_ID, RowIds
from haiku.rag.storage.lancedb.schema import CHUNK_COLUMNS

MOST_ROWS = 20_000
"""A table of more rows is asked, however small their texts are."""
READS_FIRST = 2
"""So many reads of one version of a table ask it before its texts are worth keeping."""


class HeldTexts:
    """The columns of chunks that are shown, for one handle on the chunks table, which stands still.

    They count against the budget that rows and vectors share.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._chunks: Any = None
        self._asked = 0
        self._taken = 0
        self._table: pa.Table | None = None
        self._row_ids: RowIds = np.empty(0, np.uint64)

    async def rows(self, chunks: Any, row_ids: list[int]) -> pa.Table | None:
        """The rows at these ids, which are in the table; None where it has to be asked."""
        if self._chunks is not chunks:
            self.close()
            self._chunks = chunks
        self._asked += 1
        if self._asked == READS_FIRST + 1:
            await self._load(chunks)
        if self._table is None or self._chunks is not chunks:
            return None
        return self._table.take(pa.array(self._row_ids.searchsorted(np.array(row_ids, np.uint64))))

    def close(self) -> None:
        """Forget everything."""
        self._budget.exchange(self._taken, 0)
        self._chunks, self._table, self._taken, self._asked = None, None, 0, 0

    async def _load(self, chunks: Any) -> None:
        if await chunks.count_rows() > MOST_ROWS:
            return
        table = await chunks.query().select(CHUNK_COLUMNS).with_row_id().to_arrow()
        if self._chunks is chunks and self._budget.exchange(0, table.nbytes):
            self._table, self._taken = table.combine_chunks().sort_by(ROW_ID), table.nbytes
            self._row_ids = self._table[ROW_ID].to_numpy()
