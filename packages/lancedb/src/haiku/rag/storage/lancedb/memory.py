"""The vectors of one state of a database in memory: exact cosines without a scan of the table."""

import numpy as np
from numpy.typing import NDArray

from haiku.rag.storage.lancedb.row_map import RowMap, Rows

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Chosen = NDArray[np.bool_]
"""For each place of a state whether its document is selected."""

ROUNDING = 1e-5
"""Cosines of single precision are this near to the true ones."""
WORTH_THREADS = 16_000_000
"""A product over so many values gains more by threads of its own than it loses by them."""
SHORTEST, LONGEST = 1e-15, 1e15
"""The squares of shorter and longer vectors leave single precision."""


class VectorMemory:
    """The vectors of the rows of a map, in its order, never changed once it is made."""

    def __init__(self, rows: RowMap, positions: Rows, vectors: Floats) -> None:
        self.rows = rows
        self.positions = positions
        self.vectors = vectors
        norms = _norms(vectors)
        self._inverse_norms: Floats | Doubles = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
        if norms.size and norms.min() > SHORTEST and norms.max() < LONGEST:
            self._inverse_norms = self._inverse_norms.astype(np.float32)
        self._without_direction = np.flatnonzero(norms == 0.0)

    def nearest(self, direction: Doubles, *, depth: int, chosen: Chosen | None) -> Rows:
        """The best rows for a query of length 1, at least `depth` where there are as many, in no order.

        Every row that may tie with the last place is there; rows that are zero or whose document is not chosen are
        not. Blocking.
        """
        cosines = _products(self.vectors, direction.astype(np.float32))
        cosines *= self._inverse_norms
        if len(self._without_direction):
            cosines[self._without_direction] = -np.inf
        if chosen is not None:
            cosines[~chosen[self.rows.places]] = -np.inf
        least = -2.0
        if len(cosines) > depth:
            last = len(cosines) - depth
            least = max(float(np.partition(cosines, last)[last]) - ROUNDING, least)
        rows: Rows = np.flatnonzero(cosines >= least)
        return rows


def _products(vectors: Floats, direction: Floats) -> Floats:
    if vectors.size >= WORTH_THREADS:
        return vectors @ direction
    # Its threads wait for each other while the keyword leg has the processors, which took 8 ms a database.
    products: Floats = np.einsum("ij,j->i", vectors, direction)
    return products


def direction_of(vector: Floats) -> Doubles | None:
    """The vector at length 1, None for one that is zero."""
    values = vector.astype(np.float64)
    length = float(np.sqrt(np.einsum("i,i", values, values)))
    return values / length if length else None


def true_cosines(vectors: Floats, direction: Doubles) -> Doubles:
    """The cosine of each row to a query of length 1 in double precision, and 0 where the row is zero."""
    rows = vectors.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    norms[norms == 0.0] = np.inf
    cosines: Doubles = np.einsum("ij,j->i", rows, direction) / norms
    return cosines


def _norms(vectors: Floats) -> Doubles:
    with np.errstate(over="ignore", under="ignore"):
        norms: Doubles = np.sqrt(np.einsum("ij,ij->i", vectors, vectors).astype(np.float64))
    extreme = np.flatnonzero((norms < SHORTEST) | (norms > LONGEST))
    if len(extreme):
        norms[extreme] = np.linalg.norm(vectors[extreme].astype(np.float64), axis=1)
    return norms
