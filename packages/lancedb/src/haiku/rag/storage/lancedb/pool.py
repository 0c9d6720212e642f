"""The rows that the legs of a search found, whether in memory or in the engine's tables."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.storage.lancedb.legs import matrix
from haiku.rag.storage.lancedb.memory import Floats, VectorMemory
from haiku.rag.storage.lancedb.row_map import ROW_ID, RowMap, Rows
from haiku.rag.storage.lancedb.state import DocumentState

NOTHING = pa.schema([(ROW_ID, pa.uint64()), ("id", pa.string()), ("revision", pa.string())]).empty_table()


class Pool:
    """What is known of the rows: from `rows` and `memory` where they are held, else from the tables fetched."""

    def __init__(
        self, state: DocumentState, rows: RowMap | None, memory: VectorMemory | None, tables: Sequence[pa.Table]
    ) -> None:
        self._state = state
        self._memory = memory
        self._tables = tables
        self.rows = RowMap(state, self._columns(NOTHING.column_names)) if rows is None else rows

    def find(self, leg: pa.Table | None) -> Rows:
        """Where the rows of a leg are."""
        return np.empty(0, np.int64) if leg is None else self.rows.find(leg[ROW_ID].to_numpy())

    def ids(self, places: Rows) -> NDArray[np.object_]:
        """The chunks' ids."""
        ids: NDArray[np.object_] = self.rows.ids[places]
        return ids

    def document_ids(self, places: Rows) -> list[str]:
        """The ids of their documents."""
        return [self._state.ids[place] for place in self.rows.places[places].tolist()]

    def vectors(self, places: Rows) -> Floats:
        """The vectors, which were fetched where they are not in memory."""
        if self._memory is not None:
            held: Floats = self._memory.vectors[places]
            return held
        table = self._columns([ROW_ID, "vector"])
        row_ids = table[ROW_ID].to_numpy()
        order = np.argsort(row_ids)
        vectors: Floats = matrix(table["vector"])[order[row_ids.searchsorted(self.rows.row_ids[places], sorter=order)]]
        return vectors

    def _columns(self, names: list[str]) -> pa.Table:
        if not self._tables:
            return NOTHING
        return pa.concat_tables([table.select(names) for table in self._tables])
