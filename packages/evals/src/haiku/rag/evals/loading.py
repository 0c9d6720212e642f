"""From what a user names to datasets: the bundled ones, folders, and names that ir_datasets knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from haiku.rag.evals.beir import is_beir, read_beir, read_shared
from haiku.rag.evals.datasets import Dataset, Suite
from haiku.rag.evals.errors import EvalError
from haiku.rag.evals.named import read_named

SAMPLE = "sample"
"""The bundled collections."""


def load_suite(names: Iterable[str | Path] = (SAMPLE,), *, with_passages: bool = True) -> Suite:
    """The datasets of the names, which is the bundled sample where none is given.

    A name is a folder in the BEIR layout, a folder of such folders (all of them, by name, and the questions that they
    share), `sample`, or the name of a dataset that `ir_datasets` knows, where that library is installed. `EvalError`
    says what is wrong with one. Without passages, what is asked and judged is read alone.
    """
    datasets: list[Dataset] = []
    shared: list[tuple[str, str]] = []
    for name in list(names) or [SAMPLE]:
        folder = _folder(name)
        if folder is None:
            datasets.append(read_named(str(name), with_passages=with_passages))
            continue
        datasets += [read_beir(entry, with_passages=with_passages) for entry in _members(folder)]
        shared += read_shared(folder)
    return Suite(datasets=tuple(datasets), shared=tuple(shared))


def _folder(name: str | Path) -> Traversable | None:
    path = Path(name).expanduser()
    if path.is_dir():
        return path.absolute()  # its name is the dataset's
    if str(name) == SAMPLE:
        return files("haiku.rag.evals").joinpath(SAMPLE)
    if path.exists() or isinstance(name, Path):
        raise EvalError(
            f"'{name}' is not a folder. A dataset is a folder with corpus.jsonl, queries.jsonl and qrels.tsv."
        )
    return None


def _members(folder: Traversable) -> Sequence[Traversable]:
    if is_beir(folder):
        return [folder]
    members = sorted(
        (entry for entry in folder.iterdir() if entry.is_dir() and is_beir(entry)), key=lambda entry: entry.name
    )
    if not members:
        raise EvalError(
            f"'{folder.name}' is no dataset and holds none: a folder with corpus.jsonl, queries.jsonl and qrels.tsv."
        )
    return members
