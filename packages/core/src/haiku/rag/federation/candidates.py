"""What the databases offer to one ranking."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.federation.rank import Scores, order


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The pooled rows, the databases that their `source` counts, and each one's place in configured order."""

    table: pa.Table
    refs: tuple[DatabaseRef, ...]
    configured: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The databases' names, by `source`."""
        return tuple(ref.name for ref in self.refs)

    @property
    def source(self) -> NDArray[np.int32]:
        """For each row the index of its database."""
        source: NDArray[np.int32] = self.table.column("source").to_numpy()
        return source

    def order(self, scores: Scores) -> NDArray[np.int64]:
        """The rows by score, best first; NaN is left out."""
        return order(self.table, scores, self.configured)

    def offering(self) -> frozenset[str]:
        """The names of the databases that have rows."""
        return frozenset(self.names[index] for index in np.unique(self.source))

    def rows_of(self, names: Collection[str]) -> NDArray[np.int64]:
        """The rows of the named databases."""
        return np.flatnonzero(np.isin(self.source, [self.names.index(name) for name in names if name in self.names]))

    def part(self, names: Collection[str]) -> Candidates:
        """The candidates of the named databases alone."""
        kept = [index for index, name in enumerate(self.names) if name in names]
        rows = self.rows_of(names)
        renumbered = np.searchsorted(kept, self.source[rows]).astype(np.int32)
        place = self.table.schema.get_field_index("source")
        return Candidates(
            table=self.table.take(pa.array(rows)).set_column(place, "source", pa.array(renumbered)),
            refs=tuple(self.refs[index] for index in kept),
            configured=tuple(self.configured[index] for index in kept),
        )
