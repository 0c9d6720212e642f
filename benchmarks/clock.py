"""Times and memory as figures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

Figures = dict[str, Any]


async def timed(operation: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds."""
    started = perf_counter()
    await operation()
    return (perf_counter() - started) * 1000


def median(values: list[float]) -> float:
    """The median, to a digit or two."""
    return round(float(np.median(values)), 2)


def spread(milliseconds: list[float]) -> dict[str, float]:
    """Median and 95th percentile."""
    return {
        "p50_ms": round(float(np.median(milliseconds)), 1),
        "p95_ms": round(float(np.quantile(milliseconds, 0.95)), 1),
    }


def covered(spans: list[tuple[float, float]]) -> float:
    """Seconds during which at least one span was under way."""
    total, end = 0.0, 0.0
    for start, stop in sorted(spans):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def peak_memory() -> int:
    """The process's peak resident memory, in MB (Linux)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
