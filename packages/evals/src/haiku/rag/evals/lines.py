"""The lines that tables and plots have: each is one outcome of a run, under a name of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haiku.rag.evals.errors import EvalError
from haiku.rag.evals.run_file import Outcome, Run
from haiku.rag.evals.variants import Mode


@dataclass(frozen=True, kw_only=True)
class Line:
    """An outcome: `label` is its way of searching, with the run's name before it where there are several runs."""

    label: str
    run: Run
    outcome: Outcome

    @property
    def mode(self) -> Mode:
        """Where the questions were asked."""
        return self.outcome.mode

    @property
    def name(self) -> str:
        """Way and place, such as `hybrid cosine, federated`."""
        return f"{self.label}, {self.mode}"

    def by_key(self, measure: str) -> dict[tuple[str, str], float]:
        """The figure of each question."""
        keys = (question.key for question in self.run.questions)
        return dict(zip(keys, self.outcome.values[measure], strict=True))


def lines_of(runs: Mapping[str, Run]) -> list[Line]:
    """Every outcome of the runs, which are given by name."""
    several = len(runs) > 1
    return [
        Line(label=f"{name}: {outcome.label}" if several else outcome.label, run=run, outcome=outcome)
        for name, run in runs.items()
        for outcome in run.outcomes
    ]


def chosen_lines(lines: Sequence[Line], label: str | None) -> list[Line]:
    """The lines of one way of searching, by its label or a word of it that no other has; all for None."""
    if label is None:
        return list(lines)
    labels = list(dict.fromkeys(line.label for line in lines))
    exact = [known for known in labels if known == label] or [known for known in labels if label in known.split()]
    if len(exact) != 1:
        known = ", ".join(f"'{one}'" for one in labels)
        problem = "is none of the run's" if not exact else "is not one alone"
        raise EvalError(f"'{label}' {problem} ways of searching: {known}.")
    return [line for line in lines if line.label == exact[0]]


def shared_measures(lines: Sequence[Line]) -> list[str]:
    """The measures that all lines have, in the order of the first."""
    return [measure for measure in lines[0].outcome.values if all(measure in line.outcome.values for line in lines)]


def shared_figures(a: Line, b: Line, measure: str) -> tuple[list[tuple[str, str]], np.ndarray, np.ndarray]:
    """The questions that both lines have, and the figure of each in the one and in the other."""
    first, second = a.by_key(measure), b.by_key(measure)
    keys = [key for key in first if key in second]
    if not keys:
        raise EvalError(f"'{a.name}' and '{b.name}' have no question in common.")
    return keys, np.array([first[key] for key in keys]), np.array([second[key] for key in keys])
