"""The texts of the candidates, each read once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from haiku.rag.federation.enrich import as_provenance, as_result, read_chunks
from haiku.rag.federation.slots import passage_of

if TYPE_CHECKING:
    from haiku.rag.federation.boundary import Outcome
    from haiku.rag.federation.candidates import Candidates
    from haiku.rag.federation.fetch import Opened
    from haiku.rag.federation.rank import Ranking
    from haiku.rag.federation.session import Session
    from haiku.rag.models import Chunk, SearchResult


@dataclass(kw_only=True)
class Passages:
    """Reads chunks of the pool and keeps them. `note` is told how each database answered, and may raise."""

    session: Session
    candidates: Candidates
    opened: Opened
    note: Callable[[Sequence[Outcome[Any]]], None]
    _chunks: dict[int, Chunk | None] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)

    async def read(self, rows: NDArray[np.int64]) -> list[Chunk | None]:
        """The chunks of the rows, None for one that is gone or whose database failed."""
        unread = self.unread(rows)
        if unread.size:
            chunks, outcomes = await read_chunks(
                self.session,
                self.candidates.table,
                unread,
                self.candidates.refs,
                self.opened,
                timeout_s=self.session.config.search.timeout_s,
            )
            self._chunks |= {int(row): chunk for row, chunk in zip(unread, chunks, strict=True)}
            self._failed |= {outcome.ref.name for outcome in outcomes if outcome.error is not None}
            self.note(outcomes)
        return [self._chunks[int(row)] for row in rows]

    def unread(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows that were not read yet."""
        return np.array([row for row in rows if int(row) not in self._chunks], dtype=np.int64)

    def at(self, row: int) -> Chunk:
        """The chunk of a row that was read and is there."""
        chunk = self._chunks[row]
        assert chunk is not None  # a ranking has no row that is lost
        return chunk

    def passage(self, row: int) -> Hashable | None:
        """What a row says, as far as it was read; see `passage_of`."""
        chunk = self._chunks.get(row)
        return None if chunk is None else passage_of(chunk)

    def lost(self) -> NDArray[np.bool_]:
        """Of every row, whether it cannot be a hit: its chunk is gone, or its database failed."""
        gone = [row for row, chunk in self._chunks.items() if chunk is None]
        lost = np.zeros(self.candidates.table.num_rows, dtype=np.bool_)
        lost[gone] = True
        lost[self.candidates.rows_of(self._failed)] = True
        return lost


def results_of(candidates: Candidates, passages: Passages, ranking: Ranking) -> list[SearchResult]:
    """The hits of a ranking, each with the databases that hold the same passage."""

    def source_of(row: int) -> str:
        return candidates.names[int(candidates.source[row])]

    return [
        as_result(
            passages.at(row),
            source=source_of(row),
            score=score,
            also_in=[as_provenance(passages.at(copy), source=source_of(copy)) for copy in ranking.also.get(row, ())],
        )
        for row, score in zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True)
    ]
