"""One leg of a search: the best live rows of the selected documents by one score."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.storage.lancedb.fetching import fetched
from haiku.rag.storage.lancedb.filter_rows import Places
from haiku.rag.storage.lancedb.memory import Chosen, Floats
from haiku.rag.storage.lancedb.row_map import ROW_ID, RowMap, Rows, places_of
from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.text import one_of

MOST_ROWS = 2_000
"""A leg asks for at most so many rows, or eight times its depth, before it names the revisions that it wants."""
GROWTH = 4


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The documents of a state that a search is about: `places` are those selected, None for all."""

    state: DocumentState
    places: Places | None = None
    chosen: Chosen | None = None

    @classmethod
    def of(cls, state: DocumentState, places: Places | None) -> "Selection":
        """All documents where `places` is None or names all."""
        if places is None or len(places) == len(state):
            return cls(state=state)
        chosen = np.zeros(len(state), bool)
        chosen[places] = True
        return cls(state=state, places=places, chosen=chosen)

    @property
    def share(self) -> float:
        """The part of the documents that is selected."""
        count = len(self.state) if self.places is None else len(self.places)
        return count / len(self.state) if count else 0.0

    def condition(self) -> str:
        """What a row of the chunks table satisfies just if it is live and of a selected document."""
        revisions = self.state.revisions
        return one_of("revision", revisions if self.places is None else [revisions[place] for place in self.places])

    def wanted(self, table: pa.Table, rows: RowMap | None) -> NDArray[np.bool_]:
        """Which rows of a table are live and selected; without `rows` it has their revisions."""
        if rows is None:
            places = places_of(self.state, table["revision"])
            live: NDArray[np.bool_] = places >= 0
        else:
            found = rows.find(table[ROW_ID].to_numpy())
            live = found >= 0
            places = rows.places[found] if self.chosen is not None and len(rows) else found
        return live if self.chosen is None else live & self.chosen[places]


async def fetch_leg(
    query: Callable[[], Any],
    selection: Selection,
    rows: RowMap | None,
    *,
    depth: int,
    by_condition: Callable[[], Any] | None = None,
) -> pa.Table:
    """The best wanted rows of a query without limit and condition, at least `depth` where there are as many.

    Asks with slack, drops the rows that are not wanted, and asks for more where that leaves too few. Conditions are
    dear, since the engine reads a column for them: only where few rows are wanted, the last request, which
    `by_condition` makes, names their revisions.
    """
    most = max(MOST_ROWS, 8 * depth)
    slack = depth + depth // 4 + 4
    limit = int(slack / max(selection.share, 1 / most))
    while limit <= most:
        table = await fetched(query().limit(limit), at_most=limit)
        wanted = selection.wanted(table, rows)
        if np.count_nonzero(wanted) >= depth or table.num_rows < limit:
            return _filtered(table, wanted)
        limit *= GROWTH
    table = await fetched((by_condition or query)().limit(slack).where(selection.condition()), at_most=slack)
    return _filtered(table, selection.wanted(table, rows))


def _filtered(table: pa.Table, wanted: NDArray[np.bool_]) -> pa.Table:
    return table if wanted.all() else table.filter(pa.array(wanted))


def best_first(scores: NDArray[np.float64], ids: NDArray[np.object_]) -> Rows:
    """The order by score, best first, ties by id."""
    order: Rows = np.argsort(-scores, kind="stable")
    values = scores[order]
    if np.any(values[1:] == values[:-1]):
        order = np.lexsort((np.argsort(np.argsort(ids)), -scores))
    return order


def matrix(column: pa.ChunkedArray) -> Floats:
    """A column of fixed-size lists as rows."""
    values: Floats = column.combine_chunks().flatten().to_numpy()
    return values.reshape(len(column), column.type.list_size)
