"""How well full text alone ranks judged collections, with a language and without: nDCG@10 and the time of a query.

    python benchmarks/fulltext.py FOLDER [--languages none english] [--json]

Each folder inside FOLDER is a collection in the BEIR layout: `corpus.jsonl` (`_id`, `title`, `text`), `queries.jsonl`
(`_id`, `text`) and `qrels.tsv` (query-id, corpus-id, score, below a heading). Each is searched by itself, and all of
them once more as one database, where a query's answers are the documents of its own collection, and of the other one
too where `shared_queries.tsv` (collection, query-id, other-collection, other-query-id) says that both ask the same.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log2
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any
from uuid import uuid4

import numpy as np

from haiku.rag.contracts import CandidateQuery, Database, DatabaseRef, DocumentWrite, OpenMode
from haiku.rag.models import Chunk, EmbeddingIdentity
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage

RESULTS = 10
BATCH = 1_000
IDENTITY = EmbeddingIdentity(provider="none", model="one", dimension=1)

Judgments = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Passages by id, questions by id, and for each question the grades of the passages that answer it."""

    name: str
    passages: dict[str, str]
    questions: dict[str, str]
    judgments: dict[str, Judgments]


def collections(folder: Path) -> Iterator[Collection]:
    """The collections in a folder, by name; ids become `name/id`, so that they are unique in all of them."""
    for path in sorted(entry.parent for entry in folder.glob("*/corpus.jsonl")):
        judgments: dict[str, Judgments] = {}
        with (path / "qrels.tsv").open(encoding="utf-8") as rows:
            for row in csv.DictReader(rows, delimiter="\t"):
                if int(row["score"]) > 0:
                    grades = judgments.setdefault(f"{path.name}/{row['query-id']}", {})
                    grades[f"{path.name}/{row['corpus-id']}"] = int(row["score"])
        passages = {
            f"{path.name}/{row['_id']}": "\n".join(filter(None, (row.get("title"), row["text"])))
            for row in _lines(path / "corpus.jsonl")
        }
        questions = {f"{path.name}/{row['_id']}": row["text"] for row in _lines(path / "queries.jsonl")}
        judged = {key: text for key, text in questions.items() if key in judgments}
        yield Collection(name=path.name, passages=passages, questions=judged, judgments=judgments)


def judged_together(every: Sequence[Collection], shared: Path) -> dict[str, Judgments]:
    """The judgments of all questions, where those that two collections ask have the answers of both."""
    given = {key: grades for collection in every for key, grades in collection.judgments.items()}
    together = {key: dict(grades) for key, grades in given.items()}
    if shared.exists():
        with shared.open(encoding="utf-8") as rows:
            for row in csv.DictReader(rows, delimiter="\t"):
                one = f"{row['collection']}/{row['query-id']}"
                other = f"{row['other-collection']}/{row['other-query-id']}"
                if one in given and other in given:
                    together[one].update(given[other])
                    together[other].update(given[one])
    return together


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def ndcg(ranked: Sequence[str], grades: Judgments) -> float:
    """Normalised discounted cumulative gain of the first ten: gain = grade, discount log2(rank + 1)."""

    def gained(values: Sequence[int]) -> float:
        return sum(value / log2(rank + 2) for rank, value in enumerate(values[:RESULTS]))

    return gained([grades.get(key, 0) for key in ranked]) / gained(sorted(grades.values(), reverse=True))


async def stored(engine: LanceDBStorage, place: Path, passages: dict[str, str]) -> Database:
    """A database with a document a passage, opened anew so that its indexes cover everything."""
    ref = DatabaseRef(name=place.name, location=str(place), storage="lancedb")
    database = await engine.open(ref, mode=OpenMode.CREATE, identity=IDENTITY)
    documents = (_document(key, text) for key, text in passages.items())
    while batch := list(islice(documents, BATCH)):
        await database.write(batch)
    await database.close()
    return await engine.open(ref, mode=OpenMode.READ, identity=IDENTITY)


def _document(key: str, text: str) -> DocumentWrite:
    chunks = [Chunk(id=str(uuid4()), content=text, order=0)]
    return DocumentWrite(id=key, uri=key, chunks=chunks, vectors=np.ones((1, 1), np.float32))


async def asked(
    database: Database, collection: Collection, judgments: dict[str, Judgments], times: list[float]
) -> list[float]:
    """The figure of each question."""
    figures = []
    for key, text in collection.questions.items():
        started = perf_counter()
        found = await database.search(CandidateQuery(search_type="fts", depth=RESULTS, text=text))
        times.append((perf_counter() - started) * 1000)
        figures.append(ndcg(found["document_id"].to_pylist(), judgments[key]))
    return figures


async def measure(every: Sequence[Collection], together: dict[str, Judgments], language: str | None) -> dict[str, Any]:
    """The figures of one language over all collections."""
    settings = LanceDBSettings.model_validate({"read_consistency_interval_seconds": 60, "fts_language": language})
    engine = LanceDBStorage(settings)
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        alone, pooled = {}, {}
        for collection in every:
            database = await stored(engine, Path(folder) / collection.name, collection.passages)
            alone[collection.name] = fmean(await asked(database, collection, collection.judgments, []))
            await database.close()
        everything = {key: text for collection in every for key, text in collection.passages.items()}
        database = await stored(engine, Path(folder) / "all collections", everything)
        for collection in every:
            pooled[collection.name] = await asked(database, collection, together, times)
        await database.close()
        await engine.close()
    return {
        "alone": alone,
        "pooled": {name: fmean(figures) for name, figures in pooled.items()},
        "pooled, all questions": fmean(figure for figures in pooled.values() for figure in figures),
        "pooled, mean of collections": fmean(map(fmean, pooled.values())),
        "query p50 ms": median(times),
    }


def table(figures: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The figures as lines of a Markdown table."""
    names = list(figures)
    yield "| nDCG@10 | " + " | ".join(f"{kind}, {name}" for name in names for kind in ("alone", "pooled")) + " |"
    yield "|---" * (2 * len(names) + 1) + "|"
    for collection in figures[names[0]]["alone"]:
        cells = [f"{figures[name][kind][collection]:.3f}" for name in names for kind in ("alone", "pooled")]
        yield f"| {collection} | {' | '.join(cells)} |"
    for row in ("pooled, all questions", "pooled, mean of collections", "query p50 ms"):
        yield f"| {row} | " + " | ".join(f" | {figures[name][row]:.3f}" for name in names) + " |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--languages", nargs="+", default=["none", "english"], help="'none' for no stemming")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    every = list(collections(options.folder))
    if not every:
        parser.error(f"there is no collection in '{options.folder}': a folder with corpus.jsonl in it.")
    together = judged_together(every, options.folder / "shared_queries.tsv")
    figures = {
        language: asyncio.run(measure(every, together, None if language == "none" else language))
        for language in options.languages
    }
    print(json.dumps(figures, indent=1) if options.json else "\n".join(table(figures)))


if __name__ == "__main__":
    main()
