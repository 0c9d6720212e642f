"""Federated search over 25 databases of 4,000 chunks: latency, throughput, memory, and what core itself costs.

Run by `nox -s bench`; `--json` prints the figures as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import seeded

from haiku.rag.client import HaikuRAG


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


def covered(spans: list[tuple[float, float]]) -> float:
    """Seconds during which at least one call was under way."""
    total, end = 0.0, 0.0
    for start, stop in sorted(spans):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


async def timed(operation: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds."""
    started = perf_counter()
    await operation()
    return (perf_counter() - started) * 1000


def spread(milliseconds: list[float]) -> dict[str, float]:
    """Median and 95th percentile."""
    return {
        "p50_ms": round(float(np.median(milliseconds)), 1),
        "p95_ms": round(float(np.quantile(milliseconds, 0.95)), 1),
    }


async def measure(root: Path, rounds: int) -> dict[str, Any]:
    """All figures of one process."""
    figures: dict[str, Any] = {}
    asked = iter(seeded.queries(rounds * 5 + 200))
    async with HaikuRAG(config=seeded.config(root, seeded.names()), read_only=True) as client:
        first = next(asked)
        figures["first_query_ms"] = round(await timed(lambda: client.search(first, 10)), 1)
        for kind in ("hybrid", "vector", "fts"):
            times = [await timed(lambda: client.search(next(asked), 10, search_type=kind)) for _ in range(rounds)]  # noqa: B023
            figures[kind] = spread(times)
        figures["hybrid_one_database"] = spread(
            [await timed(lambda: client.search(next(asked), 10, sources=["base-00"])) for _ in range(rounds)]
        )
        figures["hybrid_16_concurrent_queries_a_second"] = await throughput(client, [next(asked) for _ in range(96)])
        figures["outside_storage_calls"] = await outside(client, [next(asked) for _ in range(rounds)])
    figures["peak_memory_mb"] = peak_memory()
    return figures


async def throughput(client: HaikuRAG, asked: list[str]) -> float:
    """Queries a second with sixteen under way at once."""
    limiter = asyncio.Semaphore(16)

    async def one(query: str) -> None:
        async with limiter:
            await client.search(query, 10)

    spent = await timed(lambda: asyncio.gather(*(one(query) for query in asked)))
    return round(len(asked) / spent * 1000, 1)


async def outside(client: HaikuRAG, asked: list[str]) -> dict[str, float]:
    """A query's wall time during which no storage call was under way."""
    spans: list[tuple[float, float]] = []
    databases = client._session._databases
    databases.update({name: Clocked(database, spans) for name, database in databases.items()})
    times = []
    for query in asked:
        spans.clear()
        total = await timed(lambda: client.search(query, 10))  # noqa: B023
        times.append(total - covered(spans) * 1000)
    return spread(times)


def peak_memory() -> int:
    """The process's peak resident memory, in MB (Linux)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))


def main() -> None:
    """Build what is missing, measure in a fresh process, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(".bench"))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()
    root = options.root.resolve()
    if options.measure:
        print(json.dumps(asyncio.run(measure(root, options.rounds))))
        return
    root.mkdir(parents=True, exist_ok=True)
    asyncio.run(seeded.build(root))
    command = [sys.executable, __file__, "--measure", "--root", str(root), "--rounds", str(options.rounds)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures = json.loads(output.splitlines()[-1])
    if options.json:
        print(json.dumps(figures))
        return
    print(f"federated search, {seeded.DATABASES} databases x {seeded.CHUNKS} chunks x {seeded.DIMENSION} dimensions")
    for name, value in figures.items():
        print(f"  {name}: {value if not isinstance(value, dict) else ', '.join(f'{k} {v}' for k, v in value.items())}")


if __name__ == "__main__":
    main()
