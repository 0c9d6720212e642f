"""What no search can do without: the engine's full-text calls, and the products of all vectors with the query."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haiku.rag.client import HaikuRAG


@dataclass(frozen=True, kw_only=True)
class Floor:
    """The open databases' own chunks tables, and the vectors that they hold in memory: both warm."""

    tables: list[Any]
    vectors: list[NDArray[np.float32]]

    @classmethod
    def of(cls, client: HaikuRAG) -> Floor:
        """The floor under a client all of whose databases have been searched."""
        databases: list[Any] = [database for _, database in sorted(client._session._databases.items())]
        return cls(
            tables=[database._live._standing.chunks for database in databases],
            vectors=[database._vectors._held.memory.vectors for database in databases],
        )

    async def milliseconds(self, query: str, vector: NDArray[np.float32], *, depth: int) -> float:
        """One full-text call to each table at once, ids and scores alone, then the exact products, one thread."""
        from lancedb.query import MatchQuery

        match = MatchQuery(query, "text")  # type: ignore[call-arg]  # its defaults are hidden from type checkers
        started = perf_counter()
        await asyncio.gather(
            *(
                table.query().nearest_to_text(match).limit(depth).select(["id", "_score"]).to_arrow()
                for table in self.tables
            )
        )
        for vectors in self.vectors:
            # Faster here than `@`, whose threads get in each other's way on a busy machine.
            np.einsum("ij,j->i", vectors, vector)
        return (perf_counter() - started) * 1000
