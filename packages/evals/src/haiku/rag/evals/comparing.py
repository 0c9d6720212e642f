"""One way of searching against another, question by question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haiku.rag.evals.errors import EvalError
from haiku.rag.evals.lines import Line, shared_figures, shared_measures
from haiku.rag.evals.significance import Difference, paired_difference


@dataclass(frozen=True, kw_only=True)
class Change:
    """A question that the two answer differently well, by the first measure."""

    dataset: str
    id: str
    text: str
    first: float
    second: float

    @property
    def gain(self) -> float:
        """How much better the second is."""
        return self.second - self.first


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The second line against the first, over the questions of both.

    `differences` has one for each measure that both have; `winners` and `losers` are the questions that gain and lose
    most by the first of them. `warnings` say what makes the two not quite comparable.
    """

    first: str
    second: str
    measure: str
    differences: dict[str, Difference]
    winners: tuple[Change, ...]
    losers: tuple[Change, ...]
    better: int
    worse: int
    warnings: tuple[str, ...] = ()


def compare(first: Line, second: Line, *, examples: int = 5) -> Comparison:
    """Compare two lines; `EvalError` where they have no question or no measure in common."""
    measures = shared_measures([first, second])
    if not measures:
        raise EvalError(f"'{first.name}' and '{second.name}' have no measure in common.")
    differences = {measure: paired_difference(*shared_figures(first, second, measure)[1:]) for measure in measures}
    changes = sorted(_changes(first, second, measures[0]), key=lambda change: (change.gain, change.dataset, change.id))
    winners = [change for change in reversed(changes) if change.gain > 0]
    losers = [change for change in changes if change.gain < 0]
    return Comparison(
        first=first.name,
        second=second.name,
        measure=measures[0],
        differences=differences,
        winners=tuple(winners[:examples]),
        losers=tuple(losers[:examples]),
        better=len(winners),
        worse=len(losers),
        warnings=tuple(_warnings(first, second, differences[measures[0]].count)),
    )


def paired_lines(first: Sequence[Line], second: Sequence[Line]) -> list[tuple[Line, Line]]:
    """What of two runs to compare: the same way at the same place, or at each place the one way that each has.

    `EvalError` where that does not say what is to be compared with what.
    """
    same = [(a, b) for a in first for b in second if (a.outcome.label, a.mode) == (b.outcome.label, b.mode)]
    one_each = len({a.outcome.label for a in first}) == len({b.outcome.label for b in second}) == 1
    pairs = [(a, b) for a in first for b in second if a.mode is b.mode] if one_each else same
    if not pairs:
        known = ", ".join(f"'{name}'" for name in dict.fromkeys(line.name for line in (*first, *second)))
        raise EvalError(f"which are to be compared? Put a way of searching after a '#': RUN#rrf. There are: {known}.")
    return pairs


def _changes(first: Line, second: Line, measure: str) -> list[Change]:
    texts = {question.key: question.text for question in first.run.questions}
    keys, before, after = shared_figures(first, second, measure)
    return [
        Change(dataset=key[0], id=key[1], text=texts[key], first=float(one), second=float(other))
        for key, one, other in zip(keys, before, after, strict=True)
    ]


def _warnings(first: Line, second: Line, count: int) -> list[str]:
    known = {dataset.name: dataset.digest for dataset in first.run.datasets}
    changed = [d.name for d in second.run.datasets if known.get(d.name, d.digest) != d.digest]
    warnings = [f"dataset '{name}' is not the same in both." for name in changed]
    if any(len(line.run.questions) != count for line in (first, second)):
        asked = f"{len(first.run.questions)} and {len(second.run.questions)}"
        warnings.append(f"{count} questions are in both, of {asked}; only these are compared.")
    if first.run.settings.limit != second.run.settings.limit:
        warnings.append("the lists have different lengths.")
    return warnings
