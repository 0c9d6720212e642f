"""Datasets in the BEIR layout: `corpus.jsonl`, `queries.jsonl` and judgments, in a folder."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from typing import Any

from haiku.rag.evals.datasets import Dataset, Passage, key_of
from haiku.rag.evals.errors import EvalError

CORPUS = "corpus.jsonl"
QUESTIONS = "queries.jsonl"
JUDGMENTS = ("qrels.tsv", "qrels/test.tsv")
SHARED = "shared_queries.tsv"


def is_beir(folder: Traversable) -> bool:
    """Whether the folder is a dataset."""
    return folder.joinpath(QUESTIONS).is_file()


def read_beir(folder: Traversable, *, with_passages: bool = True) -> Dataset:
    """The dataset in a folder, called after it. Without its passages, the corpus need not be there."""
    judgments = _judgments(folder)
    questions = {row["_id"]: row["text"] for row in _rows(folder, QUESTIONS, "_id", "text")}
    judged = {question: grades for question, grades in judgments.items() if question in questions}
    if not judged:
        raise EvalError(f"dataset '{folder.name}' has no question that is judged.")
    return Dataset(
        name=folder.name,
        passages=tuple(_passages(folder)) if with_passages else (),
        questions=questions,
        judgments=judged,
    )


def read_shared(folder: Traversable) -> Iterator[tuple[str, str]]:
    """The pairs of questions that two datasets of the folder both ask, if it lists any."""
    if folder.joinpath(SHARED).is_file():
        for row in _table(folder, SHARED, "collection", "query-id", "other-collection", "other-query-id"):
            yield (
                key_of(row["collection"], row["query-id"]),
                key_of(row["other-collection"], row["other-query-id"]),
            )


def _passages(folder: Traversable) -> Iterator[Passage]:
    seen: set[str] = set()
    for row in _rows(folder, CORPUS, "_id", "text"):
        if row["_id"] in seen:
            raise EvalError(f"{folder.name}/{CORPUS}: the passage '{row['_id']}' is there twice.")
        seen.add(row["_id"])
        metadata = row.get("metadata") or {}
        yield Passage(id=row["_id"], title=row.get("title") or "", text=row["text"], metadata=metadata)


def _judgments(folder: Traversable) -> dict[str, dict[str, int]]:
    name = next((name for name in JUDGMENTS if folder.joinpath(name).is_file()), None)
    if name is None:
        raise EvalError(f"dataset '{folder.name}' has no judgments: neither {' nor '.join(JUDGMENTS)} is there.")
    judgments: dict[str, dict[str, int]] = {}
    for row in _table(folder, name, "query-id", "corpus-id", "score"):
        try:
            grade = int(row["score"])
        except ValueError:
            raise EvalError(f"{folder.name}/{name}: the score '{row['score']}' is not a whole number.") from None
        if grade > 0:
            judgments.setdefault(row["query-id"], {})[row["corpus-id"]] = grade
    return judgments


def _rows(folder: Traversable, name: str, *keys: str) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(_text(folder, name).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            usable = isinstance(row, dict) and all(isinstance(row.get(key), str) for key in keys)
        except ValueError:
            usable = False
        if not usable:
            raise EvalError(f"{folder.name}/{name}, line {number}: not a JSON object with texts {_listed(keys)}.")
        yield row


def _table(folder: Traversable, name: str, *columns: str) -> Iterator[Mapping[str, str]]:
    lines = csv.DictReader(_text(folder, name).splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    if not set(columns) <= set(lines.fieldnames or ()):
        raise EvalError(f"{folder.name}/{name}: the first line has to be a heading with {_listed(columns)}.")
    for number, row in enumerate(lines, 2):
        if any(row[column] is None for column in columns):
            raise EvalError(f"{folder.name}/{name}, line {number}: fewer columns than the heading has.")
        yield row


def _text(folder: Traversable, name: str) -> str:
    try:
        return folder.joinpath(name).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise EvalError(f"dataset '{folder.name}' has no {name}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise EvalError(f"{folder.name}/{name} cannot be read: {type(error).__name__}.") from None


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
