"""One page of HTML that needs nothing else: tables, each plot with the table of its figures, no address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files

from haiku.rag.evals.lines import lines_of
from haiku.rag.evals.plots import Plot, dataset_plot, difference_plot, latency_plot, quality_plot
from haiku.rag.evals.run_file import Run
from haiku.rag.evals.tables import Table, by_dataset, differences, overview, ratios

TITLE = "How well it is searched"


def html_report(runs: Mapping[str, Run]) -> str:
    """The report on runs, which are given by name."""
    lines = lines_of(runs)
    style = files("haiku.rag.evals").joinpath("page.css").read_text(encoding="utf-8")
    several = len({question.dataset for line in lines for question in line.run.questions}) > 1
    body = [
        f"<h1>{TITLE}</h1>",
        *(_run(name, run) for name, run in runs.items()),
        *_section("Quality", quality_plot(lines), overview(lines), ratios(lines)),
        *(_section("Datasets", dataset_plot(lines), by_dataset(lines)) if several else ()),
        *_section("Differences", difference_plot(lines), differences(lines)),
        *_section("Time", latency_plot(lines), _times(overview(lines))),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{TITLE}</title><style>{style}</style>'
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body><main>\n'
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )


def _section(title: str, plot: Plot | None, *tables: Table | None) -> Iterator[str]:
    shown = [table for table in tables if table is not None]
    if plot is None and not shown:
        return
    yield f"<section><h2>{escape(title)}</h2>"
    if plot is not None:
        yield (
            f'<figure><div role="img" aria-label="{escape(plot.description)}. The table below has its figures.">'
            f"{plot.svg}</div><figcaption>{escape(plot.title)}</figcaption></figure>"
        )
    yield from map(_table, shown)
    yield "</section>"


def _table(table: Table) -> str:
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = "".join(_row(row, table.texts) for row in table.rows)
    note = f"<p class=note>{escape(table.note)}</p>" if table.note else ""
    return (
        f'<div class=wide tabindex=0 role=region aria-label="{escape(table.title)}"><table><caption>'
        f"{escape(table.title)}</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{note}"
    )


def _row(row: Sequence[str], texts: int) -> str:
    first, *others = row
    words = "".join(f"<td>{escape(cell)}</td>" for cell in others[: texts - 1])
    figures = "".join(f"<td class=figure>{escape(cell)}</td>" for cell in others[texts - 1 :])
    return f'<tr><th scope="row">{escape(first)}</th>{words}{figures}</tr>'


def _run(name: str, run: Run) -> str:
    settings = run.settings
    facts = {
        "made": f"{run.created_at:%Y-%m-%d %H:%M} UTC",
        "datasets": "; ".join(f"{one.name} ({one.passages} passages)" for one in run.datasets),
        "questions": str(len(run.questions)),
        "results a question": str(settings.limit),
        "embedding": settings.embedding,
        "storage": settings.storage,
        "language of full text": settings.language or "as configured",
        "filter": settings.filter or "none",
        "versions": ", ".join(f"{distribution} {version}" for distribution, version in run.versions.items()),
        "machine": ", ".join(f"{key} {value}" for key, value in run.machine.items()),
    }
    rows = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items())
    return f"<details><summary>Run {escape(name)}</summary><dl>{rows}</dl></details>"


def _times(table: Table) -> Table:
    """The columns of the overview that are about time."""
    kept = [place for place, column in enumerate(table.columns) if place < 2 or column.endswith(" ms")]
    return Table(
        title="Time of a search",
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
        note="Milliseconds. Search: without the embedding of the question.",
    )
