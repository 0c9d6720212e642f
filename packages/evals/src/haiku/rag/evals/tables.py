"""The tables of a report, as text in cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from haiku.rag.evals.comparing import Comparison
from haiku.rag.evals.lines import Line, shared_figures, shared_measures
from haiku.rag.evals.significance import adjusted, paired_difference
from haiku.rag.evals.summary import Summary, partner, summary_of
from haiku.rag.evals.variants import Mode

NONE = "–"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns with headings, and rows of cells; the first `texts` columns hold words, the others figures."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    texts: int = 2


def figure(value: float | None, digits: int = 3) -> str:
    """A figure as tables show it."""
    return NONE if value is None else f"{value:.{digits}f}"


def signed(value: float | None) -> str:
    """A difference as tables show it."""
    return NONE if value is None else f"{value:+.3f}"


def overview(lines: Sequence[Line]) -> Table:
    """Every line, with its measures over all questions, and what it cost."""
    measures = shared_measures(lines)
    summaries = list(map(summary_of, lines))
    several = any(len(summary.by_dataset) > 1 for summary in summaries)
    between = (f"{measures[0]}, mean of datasets",) if several else ()
    return Table(
        title="Quality and cost",
        columns=("search", "where", measures[0], *between, *measures[1:], "own", "p50 ms", "p95 ms", "search p50 ms"),
        rows=tuple(_overview_row(summary, measures, several=several) for summary in summaries),
        note=(
            "Means over all questions. Own: the part of the hits that is from the question's own dataset. "
            "Search: without the embedding of the question."
        ),
    )


def _overview_row(summary: Summary, measures: Sequence[str], *, several: bool) -> tuple[str, ...]:
    between = (figure(summary.mean_of_datasets[measures[0]]),) if several else ()
    quality = [figure(summary.overall[measure]) for measure in measures]
    times = (summary.latency.p50, summary.latency.p95, summary.search.p50)
    cost = [figure(time, 1) for time in times]
    return (summary.label, summary.mode, quality[0], *between, *quality[1:], f"{summary.own_share:.0%}", *cost)


def by_dataset(lines: Sequence[Line]) -> Table:
    """The first measure of each line for each dataset."""
    measure = shared_measures(lines)[0]
    summaries = list(map(summary_of, lines))
    names = list(dict.fromkeys(name for summary in summaries for name in summary.by_dataset))
    rows = [
        (summary.label, summary.mode, *(figure(summary.by_dataset.get(name, {}).get(measure)) for name in names))
        for summary in summaries
    ]
    return Table(title=f"{measure} by dataset", columns=("search", "where", *names), rows=tuple(rows))


def ratios(lines: Sequence[Line]) -> Table | None:
    """Federated over pooled, for each way that was measured at both places."""
    measure = shared_measures(lines)[0]
    summaries = list(map(summary_of, lines))
    pairs = [
        (summary, pooled)
        for summary in summaries
        if summary.mode is Mode.FEDERATED and (pooled := partner(summaries, summary, Mode.POOLED)) is not None
    ]
    if not pairs:
        return None
    return Table(
        title="Several databases over one that holds everything",
        columns=("search", measure, f"{measure}, mean of datasets", "p50", "search p50"),
        rows=tuple((several.label, *map(figure, _ratios(several, one, measure))) for several, one in pairs),
        note="Ratios: federated divided by pooled. For quality 1 or more is best, for time less is.",
        texts=1,
    )


def _ratios(several: Summary, one: Summary, measure: str) -> Iterator[float | None]:
    for top, bottom in (
        (several.overall[measure], one.overall[measure]),
        (several.mean_of_datasets[measure], one.mean_of_datasets[measure]),
        (several.latency.p50, one.latency.p50),
        (several.search.p50, one.search.p50),
    ):
        yield top / bottom if bottom else None


def differences(lines: Sequence[Line]) -> Table | None:
    """At each place, every other way of searching against the first one, by the first measure."""
    measure = shared_measures(lines)[0]
    pairs = []
    for mode in dict.fromkeys(line.mode for line in lines):
        first, *others = [line for line in lines if line.mode is mode]
        pairs += [(first, other) for other in others]
    if not pairs:
        return None
    found = [paired_difference(*shared_figures(first, other, measure)[1:]) for first, other in pairs]
    together = adjusted([difference.p for difference in found])
    rows = tuple(
        (other.label, first.label, other.mode, signed(difference.mean), signed(difference.low), signed(difference.high),
         figure(difference.p), figure(p))
        for (first, other), difference, p in zip(pairs, found, together, strict=True)
    )  # fmt: skip
    return Table(
        title=f"{measure}: differences",
        columns=("search", "against", "where", "difference", "from", "to", "p", "p, all together"),
        rows=rows,
        note="From and to: 95 % confidence. p: Student's paired t-test; all together: Benjamini and Hochberg.",
        texts=3,
    )


def tables_of(lines: Sequence[Line]) -> list[Table]:
    """All tables that make sense for the lines."""
    several = len({question.dataset for line in lines for question in line.run.questions}) > 1
    tables = [overview(lines), ratios(lines), by_dataset(lines) if several else None, differences(lines)]
    return [table for table in tables if table is not None]


def comparison_tables(comparison: Comparison) -> list[Table]:
    """The differences, and the questions that gain and lose most."""
    rows = [
        (measure, *map(figure, (found.first, found.second)), *map(signed, (found.mean, found.low, found.high)),
         figure(found.p))
        for measure, found in comparison.differences.items()
    ]  # fmt: skip
    count = next(iter(comparison.differences.values())).count
    tables = [
        Table(
            title=f"{comparison.second} against {comparison.first}",
            columns=("measure", "first", "second", "difference", "from", "to", "p"),
            rows=tuple(rows),
            note=f"{count} questions; by {comparison.measure} {comparison.better} gain and {comparison.worse} lose.",
            texts=1,
        )
    ]
    for title, changes in (("Gain most", comparison.winners), ("Lose most", comparison.losers)):
        shown = tuple(
            (change.dataset, change.id, change.text, figure(change.first), figure(change.second)) for change in changes
        )
        if shown:
            columns = ("dataset", "question", "text", "first", "second")
            tables.append(Table(title=f"{title} ({comparison.measure})", columns=columns, rows=shown, texts=3))
    return tables
