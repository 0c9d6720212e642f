"""Searching 25 databases of 4,000 chunks: latency beside the floor, throughput, memory, and what core itself costs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter
from typing import Any

import seeded
from clock import Figures, covered, median, peak_memory, spread, timed
from floor import Floor

from haiku.rag.client import HaikuRAG
from haiku.rag.models import SearchType

DEPTH = 20
WARMING = 3
AT_ONCE = 16
SEARCHES: dict[str, tuple[SearchType, str | None]] = {
    "hybrid": ("hybrid", None),
    "vector": ("vector", None),
    "fts": ("fts", None),
    "calibrated": ("hybrid", "calibrated"),
}
"""Each kind of search with its fusion. The last two need statistics of the query's terms."""


class Clocked:
    """A database whose calls' times are written down."""

    def __init__(self, database: Any, spans: list[tuple[float, float]]) -> None:
        self._database, self._spans = database, spans

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._database, name)
        if not asyncio.iscoroutinefunction(value):
            return value

        async def call(*args: Any, **kwargs: Any) -> Any:
            started = perf_counter()
            try:
                return await value(*args, **kwargs)
            finally:
                self._spans.append((started, perf_counter()))

        return call


async def measure(root: Path, kind: str, rounds: int) -> Figures:
    """All figures of one process. The library of the engine is imported before the clock starts."""
    import lancedb

    assert lancedb
    asked = iter(seeded.queries(7 * rounds + 200))
    async with HaikuRAG(config=seeded.config(root, seeded.names(kind), kind), read_only=True) as client:
        figures = await first_query(client, next(asked))
        figures |= await beside_floor(client, asked, rounds)
        one = seeded.names(kind)[0]
        alone = [await timed(lambda: client.search(next(asked), 10, sources=[one])) for _ in range(rounds)]
        figures["hybrid_one_database"] = spread(alone)
        figures["queries_a_second"] = await throughput(client, [next(asked) for _ in range(6 * AT_ONCE)])
        figures["outside_storage_calls"] = await outside(client, [next(asked) for _ in range(rounds)])
    figures["peak_memory_mb"] = peak_memory()
    return figures


async def first_query(client: HaikuRAG, query: str) -> Figures:
    """The first query on cold databases, and how long the slowest of them took to open and answer among the others."""
    started = perf_counter()
    report = (await client.search(query, 10)).report
    spent = (perf_counter() - started) * 1000
    slowest = max(entry.milliseconds for entry in report.databases)
    return {
        "first_query_ms": round(spent, 1),
        "slowest_open_ms": round(slowest, 1),
        "first_query_ratio": round(spent / slowest, 2),
    }


async def beside_floor(client: HaikuRAG, asked: Any, rounds: int) -> Figures:
    """Each kind of search in turn with the floor, so that all of them meet the same machine."""
    times: dict[str, list[float]] = {name: [] for name in ("floor", *SEARCHES)}
    floor = None
    for turn in range(WARMING + rounds):
        for name, (kind, fusion) in SEARCHES.items():
            spent = await timed(lambda: client.search(next(asked), 10, search_type=kind, fusion=fusion))  # noqa: B023
            times[name].append(spent)
        floor = floor or Floor.of(client)
        query = next(asked)
        vector = await client._session.embedder.embed_query(query)
        times["floor"].append(await floor.milliseconds(query, vector, depth=DEPTH))
        if turn < WARMING:
            times = {name: [] for name in times}
    figures: Figures = {name: spread(values) for name, values in times.items()}
    for name in SEARCHES:
        figures[f"{name}_ratio"] = round(median(times[name]) / median(times["floor"]), 2)
    return figures


async def throughput(client: HaikuRAG, asked: list[str]) -> float:
    """Queries a second with sixteen under way at once."""
    limiter = asyncio.Semaphore(AT_ONCE)

    async def one(query: str) -> None:
        async with limiter:
            await client.search(query, 10)

    spent = await timed(lambda: asyncio.gather(*(one(query) for query in asked)))
    return round(len(asked) / spent * 1000, 1)


async def outside(client: HaikuRAG, asked: list[str]) -> dict[str, float]:
    """A query's wall time during which no storage call was under way."""
    spans: list[tuple[float, float]] = []
    databases = client._session._databases
    originals = dict(databases)
    databases.update({name: Clocked(database, spans) for name, database in originals.items()})
    times = []
    for query in asked:
        spans.clear()
        total = await timed(lambda: client.search(query, 10))  # noqa: B023
        times.append(total - covered(spans) * 1000)
    databases.update(originals)
    return spread(times)
