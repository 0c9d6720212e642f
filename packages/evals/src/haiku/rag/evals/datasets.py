"""Judged collections: passages, questions, and which passages answer which question."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from haiku.rag.evals.errors import EvalError

Grades = Mapping[str, int]
"""Passages by key, and how well each answers: 1 and more."""


def key_of(dataset: str, identifier: str) -> str:
    """What a passage or question is called among several datasets; also the URI that a passage is stored by."""
    return f"{dataset}/{identifier}"


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A passage: one document, of one chunk."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """What is embedded and indexed: the title, where there is one, and the text on the next line."""
        return "\n".join(filter(None, (self.title, self.text)))


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A judged collection, which becomes one database.

    `questions` maps ids to texts; `judgments` the ids of questions to the ids of the passages that answer them, with
    their grades. Ids are unique within a dataset. `name` has no slash in it.
    """

    name: str
    passages: tuple[Passage, ...]
    questions: Mapping[str, str]
    judgments: Mapping[str, Grades]

    @cached_property
    def content_digest(self) -> str:
        """A hash of the passages, whatever the dataset is called: the vectors of two equal ones are the same."""
        rows = ([passage.id, passage.content, passage.metadata] for passage in self.passages)
        return _digest(rows)

    @cached_property
    def digest(self) -> str:
        """A hash of everything in it."""
        questions = sorted(self.questions.items())
        judgments = sorted((question, sorted(grades.items())) for question, grades in self.judgments.items())
        return _digest([self.content_digest, questions, judgments])


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question of a dataset, with the passages that answer it there (`own`) and in all datasets (`everywhere`)."""

    dataset: str
    id: str
    text: str
    own: Grades
    everywhere: Grades

    @property
    def key(self) -> str:
        """What it is called among the cases of all datasets."""
        return key_of(self.dataset, self.id)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Datasets that are measured together; `shared` are pairs of keys of questions that two of them both ask."""

    datasets: tuple[Dataset, ...]
    shared: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        names = [dataset.name for dataset in self.datasets]
        if not names:
            raise EvalError("there is no dataset to measure with.")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise EvalError(f"two datasets are called '{twice}'. Rename the folder of one of them.")

    @property
    def names(self) -> tuple[str, ...]:
        """The datasets' names, in order."""
        return tuple(dataset.name for dataset in self.datasets)

    def cases(self) -> list[Case]:
        """Every judged question, dataset after dataset."""
        own = {
            key_of(dataset.name, question): _keyed(dataset.name, grades)
            for dataset in self.datasets
            for question, grades in dataset.judgments.items()
        }
        everywhere = {key: dict(grades) for key, grades in own.items()}
        for one, other in self.shared:
            if one in own and other in own:
                everywhere[one].update(own[other])
                everywhere[other].update(own[one])
        return [
            Case(dataset=dataset.name, id=question, text=text, own=own[key], everywhere=everywhere[key])
            for dataset in self.datasets
            for question, text in dataset.questions.items()
            if (key := key_of(dataset.name, question)) in own
        ]


def restricted(cases: Iterable[Case], keys: frozenset[str]) -> list[Case]:
    """The cases that passages of these keys answer, judged by these passages alone."""
    narrowed = (replace(case, own=_among(case.own, keys), everywhere=_among(case.everywhere, keys)) for case in cases)
    return [case for case in narrowed if case.own]


def drawn(cases: Sequence[Case], count: int | None, *, seed: int) -> list[Case]:
    """So many of the cases, drawn at random, in their order; all of them for None."""
    if count is None or count >= len(cases):
        return list(cases)
    chosen = random.Random(seed).sample(range(len(cases)), count)  # noqa: S311 - a sample, not a secret
    return [cases[place] for place in sorted(chosen)]


def _among(grades: Grades, keys: frozenset[str]) -> Grades:
    return {key: grade for key, grade in grades.items() if key in keys}


def _keyed(dataset: str, grades: Grades) -> dict[str, int]:
    return {key_of(dataset, passage): grade for passage, grade in grades.items()}


def _digest(rows: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for line in _lines(rows):
        digest.update(line)
    return digest.hexdigest()


def _lines(rows: Iterable[Any]) -> Iterator[bytes]:
    for row in rows:
        yield json.dumps(row, sort_keys=True, default=dict).encode("utf-8", "surrogatepass") + b"\n"
