"""A filter that selects half of 60,000 documents, beside the same searches without it."""

from __future__ import annotations

from pathlib import Path

import seeded
from clock import Figures, median, timed

from haiku.rag.client import HaikuRAG
from haiku.rag.models import SearchType

WARMING = 6
SEARCH_TYPES: tuple[SearchType, ...] = ("hybrid", "vector", "fts")


async def build(root: Path, kind: str) -> None:
    """Make the database where it is not there yet: a chunk a document."""
    await seeded.build(root, f"half-{kind}", kind, chunks=seeded.HALF_DOCUMENTS, a_document=1)


async def measure(root: Path, kind: str, rounds: int) -> Figures:
    """Milliseconds with and without the filter in turn. Each query has a filter of its own: none is looked up."""
    times: dict[SearchType, tuple[list[float], list[float]]] = {name: ([], []) for name in SEARCH_TYPES}
    asked = iter(seeded.queries(6 * (rounds + WARMING)))
    async with HaikuRAG(config=seeded.config(root, [f"half-{kind}"], kind), read_only=True) as client:
        for turn in range(WARMING + rounds):
            half = f"title LIKE 'even %' AND uri != 'bench:{turn}'"
            for name, (plain, filtered) in times.items():
                plain.append(await timed(lambda: client.search(next(asked), 10, search_type=name)))  # noqa: B023
                only = f"{half} AND uri != '{name}'"
                spent = await timed(lambda: client.search(next(asked), 10, search_type=name, filter=only))  # noqa: B023
                filtered.append(spent)
    figures: Figures = {}
    for name, (plain, filtered) in times.items():
        figures[f"{name}_plain_ms"], figures[f"{name}_half_ms"] = median(plain[WARMING:]), median(filtered[WARMING:])
        figures[f"{name}_half_ratio"] = round(median(filtered[WARMING:]) / median(plain[WARMING:]), 2)
    return figures
