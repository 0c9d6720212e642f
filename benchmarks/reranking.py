"""What the reranker `local` takes: passages that are new, and passages that it remembers. Run by `nox -s bench`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from time import perf_counter

from clock import Figures, spread
from embedding import texts

from haiku.rag.contracts import RerankCandidate
from haiku.rag.rerankers.local.reranker import LocalReranker
from haiku.rag.rerankers.local.settings import RerankLocalSettings

COUNTS = (10, 25, 50)
QUERY = "how are results from several databases merged into one list"


def candidate(text: str) -> RerankCandidate:
    """A candidate of a text, fused in the middle."""
    return RerankCandidate(text=text, source="docs", chunk_id=text[:20], score=0.5)


async def measure(rounds: int) -> Figures:
    """Milliseconds of a call, cold and warm, for some numbers of candidates."""
    figures: Figures = {}
    for count in COUNTS:
        candidates = [candidate(text) for text in texts(count)]
        cold: list[float] = []
        warm: list[float] = []
        reranker = LocalReranker(RerankLocalSettings(max_candidates=count))
        for _ in range(rounds):
            await reranker.close()
            await reranker.rerank(QUERY, [candidate("loads the model")], 1)
            for spans in (cold, warm):
                started = perf_counter()
                await reranker.rerank(QUERY, candidates, 10)
                spans.append((perf_counter() - started) * 1000)
        await reranker.close()
        figures[f"{count} candidates"] = {"cold": spread(cold), "warm": spread(warm)}
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = asyncio.run(measure(min(options.rounds, 20)))
    if options.json:
        print(json.dumps(figures))
        return
    print(f"reranking passages of 20 to 180 words on {os.cpu_count()} cores")
    for name, figure in figures.items():
        print(f"  {name}: cold {figure['cold']['p50_ms']} ms, warm {figure['warm']['p50_ms']} ms (p50)")


if __name__ == "__main__":
    main()
