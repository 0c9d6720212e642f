"""Where the live chunks of one version of the chunks table are."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from haiku.rag.storage.lancedb.state import DocumentState

ROW_ID = "_rowid"
ROW_COLUMNS = ["id", "revision", "position"]
BYTES_A_ROW = 128
"""About what a row takes here: an id of 36 letters and four numbers."""

RowIds = NDArray[np.uint64]
Rows = NDArray[np.int64]
"""Places in a row map, or in a table."""


class RowMap:
    """The rows of the live revisions of a state at one version of the chunks table, rising by row id; never changed.

    Row ids are the engine's own and hold for that version alone, since compaction moves rows. `ids` are the chunks',
    `places` those of each row's document in the state, `source` the rows of `table` that each came from.
    """

    def __init__(self, state: DocumentState, table: pa.Table) -> None:
        places = places_of(state, table["revision"])
        row_ids = table[ROW_ID].to_numpy()
        source: Rows = np.flatnonzero(places >= 0)
        if np.any(row_ids[source][1:] < row_ids[source][:-1]):
            source = source[np.argsort(row_ids[source])]
        self.source = source
        self.row_ids: RowIds = row_ids[source]
        self.places: Rows = places[source]
        self.ids: NDArray[np.object_] = table["id"].to_numpy()[source]

    def __len__(self) -> int:
        return len(self.row_ids)

    def is_whole(self, count: int) -> bool:
        """Whether these are all of that many rows, in their order."""
        return len(self.source) == count and bool(np.all(self.source[1:] > self.source[:-1]))

    def find(self, row_ids: RowIds) -> Rows:
        """The places here of row ids, -1 for rows that are not live."""
        if not len(self):
            return np.full(len(row_ids), -1)
        places = np.minimum(self.row_ids.searchsorted(row_ids), len(self) - 1)
        return np.where(self.row_ids[places] == row_ids, places, -1)


def places_of(state: DocumentState, revisions: pa.ChunkedArray) -> Rows:
    """The place in the state of each row's document, -1 for a revision that is not live."""
    live = state.table["revision"].combine_chunks()
    found: Rows = pc.fill_null(pc.index_in(revisions, value_set=live), -1).to_numpy().astype(np.int64)
    return found
