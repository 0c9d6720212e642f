"""One leg of a search: the best live rows by one score."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.text import one_of

ROUNDS = 3
"""How often a leg is asked for more when old revisions' rows took places; the last time for live rows only."""


@dataclass(frozen=True, kw_only=True)
class Leg:
    """Live rows, best first, at most as many as asked; `scores` grow with quality, `vectors` only where fetched."""

    ids: list[str] = field(default_factory=list)
    document_ids: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    vectors: NDArray[np.float32] | None = None


async def fetch_leg(
    query: Callable[[], Any], state: DocumentState, *, score: str, depth: int, condition: str | None
) -> Leg:
    """Ask with slack, drop rows of revisions that are not live, and ask again where that leaves too few.

    `query` makes a fresh query without limit and condition; `score` is `_distance` or `_score`.
    """
    limit = depth + depth // 4 + 4
    stale: set[str] = set()
    for attempt in range(1, ROUNDS + 1):
        last = attempt == ROUNDS
        where = _where(condition, stale, live=state.revisions if last else None)
        request = query().limit(limit) if where is None else query().limit(limit).where(where)
        table = await request.to_arrow()
        revisions = table["revision"].to_pylist()
        live = [row for row, revision in enumerate(revisions) if revision in state.rows_by_revision]
        if last or len(live) >= depth or table.num_rows < limit:
            break
        stale.update(revision for revision in revisions if revision not in state.rows_by_revision)
        limit *= 2
    return _leg(table, live, revisions, state, score=score, depth=depth)


def _where(condition: str | None, stale: set[str], *, live: list[str] | None) -> str | None:
    conditions = [] if condition is None else [condition]
    if live is not None:
        conditions.append(one_of("revision", live))
    elif stale:
        conditions.append(one_of("revision", sorted(stale), negated=True))
    return " AND ".join(conditions) or None


def _leg(
    table: pa.Table, live: list[int], revisions: list[str], state: DocumentState, *, score: str, depth: int
) -> Leg:
    ids = table["id"].to_pylist()
    values = table[score].to_pylist()
    scores = [1.0 - value for value in values] if score == "_distance" else values
    rows = sorted(live, key=lambda row: (-scores[row], ids[row]))[:depth]
    return Leg(
        ids=[ids[row] for row in rows],
        document_ids=[state.ids[state.rows_by_revision[revisions[row]]] for row in rows],
        scores=[scores[row] for row in rows],
        vectors=matrix(table["vector"])[rows] if "vector" in table.column_names else None,
    )


def matrix(column: pa.ChunkedArray) -> NDArray[np.float32]:
    """A column of fixed-size lists as rows."""
    values: NDArray[np.float32] = column.combine_chunks().flatten().to_numpy()
    return values.reshape(len(column), column.type.list_size)
