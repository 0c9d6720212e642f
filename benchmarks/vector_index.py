"""Kinds of vector index at several sizes: time to build, size, and milliseconds a query at recall@10 of 0.99.

Run by `nox -s bench`; `--sizes 500000` takes minutes. Each kind is asked with growing effort until it finds 99 of 100
true neighbours; what it reaches with the most effort is shown where it never does. Vectors are seeded: around 64
centres (clustered), without any structure (isotropic), and isotropic with one dimension ten times as long (skewed).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

import seeded

from haiku.rag.storage.lancedb.location import folder_size
from haiku.rag.storage.lancedb.vector_index import VECTOR_INDEX, partitions, tuned

QUERIES = 40
WARMING = 5
DEPTH = 10
ENOUGH = 0.99
PATIENCE_ROWS = {"HNSW_SQ": 100_000, "IVF_PQ": 100_000}
"""Kinds that take more than a quarter of an hour to build beyond so many rows."""

Floats = NDArray[np.float32]
Tune = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one kind reached."""

    rows: int
    vectors: str
    kind: str
    build_seconds: float
    megabytes: float
    effort: str
    milliseconds: float
    recall: float


def vectors(kind: str, random: np.random.Generator, count: int) -> Floats:
    """Unit vectors with the structure that `kind` names."""
    if kind == "clustered":
        return seeded.near(seeded.centres(), random, count)
    normal = random.standard_normal((count, seeded.DIMENSION))
    if kind == "skewed":
        normal[:, 0] *= 10
    return seeded.unit(normal)


def configurations(rows: int) -> dict[str, Any]:
    """The kinds of index that are compared."""
    from lancedb.index import HnswSq, IvfFlat, IvfPq, IvfRq, IvfSq

    parts: dict[str, Any] = {"distance_type": "cosine", "num_partitions": partitions(rows)}
    usual: dict[str, Any] = {"distance_type": "cosine", "num_partitions": int(rows**0.5)}
    return {
        "IVF_FLAT": IvfFlat(**usual),
        "IVF_SQ": IvfSq(**usual),
        "IVF_SQ, few partitions": IvfSq(**parts),
        "IVF_RQ, 1 bit": IvfRq(**parts),
        "IVF_RQ, 4 bits": IvfRq(**parts, num_bits=4),
        "HNSW_SQ": HnswSq(**parts),
        "IVF_PQ": IvfPq(**parts),
    }


def efforts(kind: str, rows: int) -> Iterator[tuple[str, Tune]]:
    """Ways to ask an index, the cheapest first; for the kind that the engine builds, only as it is asked."""
    if kind == "IVF_SQ, few partitions":
        yield "as built in", tuned
        return
    count = partitions(rows) if "FLAT" not in kind and kind != "IVF_SQ" else int(rows**0.5)
    if kind == "HNSW_SQ":
        for ef in (50, 150, 500, 1500):
            yield f"ef {ef}", _walking(count, ef)
        return
    for share in (0.05, 0.25, 1.0):
        probes = max(1, round(share * count))
        for refine in (None,) if kind == "IVF_FLAT" else (2, 10, 30):
            refined = "" if refine is None else f", refine {refine}"
            yield f"{probes}/{count} partitions{refined}", _probing(probes, refine)


def _walking(probes: int, ef: int) -> Tune:
    return lambda query: query.nprobes(probes).ef(ef).refine_factor(5)


def _probing(probes: int, refine: int | None) -> Tune:
    return lambda query: query.nprobes(probes) if refine is None else query.nprobes(probes).refine_factor(refine)


async def measured(table: Any, queries: Floats, truth: list[set[int]], tune: Tune) -> tuple[float, float]:
    """Median milliseconds and recall."""
    times, found = [], 0
    for number, query in enumerate([*queries[:WARMING], *queries]):
        request = tune(table.query().nearest_to(query).distance_type("cosine")).limit(DEPTH).select(["id", "_distance"])
        started = perf_counter()
        ids = (await request.to_arrow())["id"].to_pylist()
        if number >= WARMING:
            times.append((perf_counter() - started) * 1000)
            found += len(truth[number - WARMING] & set(ids))
    return median(times), found / (DEPTH * len(queries))


async def compare(rows: int, structure: str, kinds: list[str], folder: Path) -> list[Figures]:
    """Every kind over the same vectors."""
    import lancedb

    random = np.random.default_rng(seeded.SEED)
    stored, queries = vectors(structure, random, rows), vectors(structure, random, QUERIES)
    truth = [set(np.argpartition(-(stored @ query), DEPTH)[:DEPTH].tolist()) for query in queries]
    column = pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), seeded.DIMENSION)
    connection = await lancedb.connect_async(str(folder))
    table = await connection.create_table("vectors", pa.table({"id": pa.array(range(rows)), "vector": column}))
    milliseconds, recall = await measured(table, queries, truth, lambda query: query)
    line: dict[str, Any] = {"rows": rows, "vectors": structure}
    scan: dict[str, Any] = {"kind": "scan", "build_seconds": 0.0, "megabytes": 0.0, "effort": ""}
    results = [Figures(**line, **scan, milliseconds=milliseconds, recall=recall)]
    show(results[-1])
    for kind, config in configurations(rows).items():
        if (kinds and kind not in kinds) or rows > PATIENCE_ROWS.get(kind, rows):
            continue
        before, started = folder_size(folder), perf_counter()
        await table.create_index("vector", config=config, replace=True, name=VECTOR_INDEX)
        line |= {"build_seconds": perf_counter() - started, "megabytes": (folder_size(folder) - before) / 2**20}
        results.append(Figures(**line, kind=kind, **await _reached(table, queries, truth, efforts(kind, rows))))
        show(results[-1])
    return results


async def _reached(
    table: Any, queries: Floats, truth: list[set[int]], ways: Iterator[tuple[str, Tune]]
) -> dict[str, Any]:
    """The first way that finds enough, or the last."""
    reached: dict[str, Any] = {}
    for effort, tune in ways:
        milliseconds, recall = await measured(table, queries, truth, tune)
        reached = {"effort": effort, "milliseconds": milliseconds, "recall": recall}
        if recall >= ENOUGH:
            break
    return reached


def show(figures: Figures) -> None:
    """One row of the table."""
    print(
        f"| {figures.rows:,} | {figures.vectors} | {figures.kind} | {figures.build_seconds:.1f} s "
        f"| {figures.megabytes:.0f} MB | {figures.effort} | {figures.milliseconds:.1f} ms | {figures.recall:.3f} |",
        file=sys.stderr,
        flush=True,
    )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000])
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("--structures", nargs="*", default=["clustered", "isotropic", "skewed"])
    parser.add_argument("--json", action="store_true")
    options, _ = parser.parse_known_args()
    print("| rows | vectors | kind | built in | size | effort | query | recall@10 |", file=sys.stderr)
    results = []
    for rows in options.sizes:
        for structure in options.structures:
            with tempfile.TemporaryDirectory() as folder:
                results += asyncio.run(compare(rows, structure, options.kinds, Path(folder)))
    if options.json:
        print(json.dumps([asdict(figures) for figures in results]))


if __name__ == "__main__":
    main()
