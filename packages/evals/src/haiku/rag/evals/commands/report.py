"""`haiku-rag eval report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from haiku.rag.evals.commands.output import print_json, print_tables
from haiku.rag.evals.commands.reading import read_runs
from haiku.rag.evals.errors import EvalError
from haiku.rag.evals.html_page import html_report
from haiku.rag.evals.lines import lines_of
from haiku.rag.evals.summary import summary_of
from haiku.rag.evals.tables import tables_of


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--html", metavar="FILE", help="Write a page with plots.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def report_command(runs: Sequence[str], *, html: str | None, as_json: bool) -> None:
    """Show runs that 'eval run --out' wrote, side by side; with --html as a page that needs nothing else."""
    read = read_runs(runs)
    lines = lines_of(read)
    if html is not None:
        _write(html, html_report(read))
    if as_json:
        print_json({"results": [summary_of(line) for line in lines], "report": {"html": html}})
    elif html is not None:
        click.echo(f"Wrote {html}.")
    else:
        print_tables(tables_of(lines))


def _write(path: str, text: str) -> None:
    try:
        Path(path).expanduser().write_text(text, encoding="utf-8")
    except OSError as error:
        raise EvalError(f"'{path}' cannot be written: {error.strerror}.") from None
