"""Runs that are given on the command line: `FILE`, or `FILE#WAY` for one way of searching of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from haiku.rag.evals.lines import Line, chosen_lines, lines_of
from haiku.rag.evals.run_file import Run, load_run


def read_lines(text: str) -> list[Line]:
    """The lines of a run, all or those of one way of searching."""
    path, way = _split(text)
    return chosen_lines(lines_of({"": load_run(path)}), way)


def read_runs(paths: Iterable[str]) -> dict[str, Run]:
    """Runs by their files' names; one that another has already gets a number."""
    runs: dict[str, Run] = {}
    for path in paths:
        stem = name = Path(path).stem
        number = 1
        while name in runs:
            number += 1
            name = f"{stem} ({number})"
        runs[name] = load_run(path)
    return runs


def _split(text: str) -> tuple[str, str | None]:
    if Path(text).expanduser().exists():
        return text, None
    path, hash_sign, way = text.rpartition("#")
    return (path, way) if hash_sign else (text, None)
