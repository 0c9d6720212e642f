"""One database of 100,000 chunks: writing it, and searching it from the first query on."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import seeded
from clock import Figures, spread, timed

from haiku.rag.client import HaikuRAG
from haiku.rag.models import SearchResults

LIMIT = 10
EARLY = 10
"""So many queries after the first, which opens the database, are the early ones."""
SETTLING = 40


async def measure_writing(root: Path, kind: str, _: int) -> Figures:
    """Chunks a second with ready vectors, ten a document, closing included."""
    with tempfile.TemporaryDirectory(dir=root) as folder:
        seconds = await seeded.build(Path(folder), "written", kind, chunks=seeded.LARGE_CHUNKS)
    assert seconds is not None
    return {"write_chunks_a_second": round(seeded.LARGE_CHUNKS / seconds)}


async def measure(root: Path, kind: str, rounds: int) -> Figures:
    """Vector search, the library's own import left out: the early queries, the later ones, and the recall of each."""
    import lancedb

    assert lancedb
    name = f"large-{kind}"
    vectors = seeded.vectors(kind, np.random.default_rng(seeded.SEED), seeded.LARGE_CHUNKS)
    asked = seeded.queries(1 + EARLY + SETTLING + rounds)
    times, recalls, products = [], [], []
    async with HaikuRAG(config=seeded.config(root, [name], kind), read_only=True) as client:
        for query in asked:
            found: list[SearchResults] = []

            async def search() -> None:
                found.append(await client.search(query, LIMIT, search_type="vector"))  # noqa: B023

            times.append(await timed(search))
            vector = await client._session.embedder.embed_query(query)
            started = perf_counter()
            exact = np.einsum("ij,j->i", vectors, vector)
            products.append((perf_counter() - started) * 1000)
            recalls.append(recall(found[0], exact))
    early, later = slice(1, 1 + EARLY), slice(1 + EARLY + SETTLING, None)
    return {
        "large_first_query_ms": round(times[0], 1),
        "large_vector_early": spread(times[early]),
        "large_vector": spread(times[later]),
        "large_product": spread(products),
        "large_recall_early": round(float(np.mean(recalls[: 1 + EARLY])), 4),
        "large_recall": round(float(np.mean(recalls[later])), 4),
    }


def recall(found: SearchResults, exact: np.ndarray) -> float:
    """The part of the true best ten that was found."""
    least = np.partition(exact, len(exact) - LIMIT)[len(exact) - LIMIT]
    similarities = [entry.similarity or 0.0 for entry in found.report.results]
    return len([similarity for similarity in similarities if similarity >= least - 1e-6]) / LIMIT


async def build(root: Path, kind: str) -> None:
    """Make the database where it is not there yet."""
    name = f"large-{kind}"
    if not (root / f"{name}.done").exists():
        shutil.rmtree(root / f"{name}.lancedb", ignore_errors=True)
    await seeded.build(root, name, kind, chunks=seeded.LARGE_CHUNKS)
