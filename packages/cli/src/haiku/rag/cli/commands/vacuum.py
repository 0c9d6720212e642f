"""`haiku-rag vacuum`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from haiku.rag.cli.boundary import Failure
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.maintenance import run_on
from haiku.rag.cli.options import database_option, dry_run_option, json_option
from haiku.rag.cli.output import one_line, print_json, print_text

if TYPE_CHECKING:
    from haiku.rag.models import UpkeepReport


@click.command()
@dry_run_option
@click.option(
    "--retention-seconds",
    type=click.FloatRange(min=0),
    metavar="N",
    help="Keep old states for so long, instead of storage.vacuum_retention_seconds; longer where readers need them.",
)
@database_option
@json_option
@pass_invocation
def command(
    invocation: Invocation, *, dry_run: bool, retention_seconds: float | None, database_path: str | None, as_json: bool
) -> None:
    """Remove what nobody needs any more, compact, and bring indexes up to date.

    It happens by itself after writes, unless storage.auto_vacuum is off. A step that fails does not stop the next.
    """
    client = invocation.writer("vacuuming", database_path, any_embedding=True)
    report = run_on(
        client,
        "vacuum",
        lambda opened: opened.vacuum(retention_seconds=retention_seconds, dry_run=dry_run),
    )
    name = client.source_names[0]
    if as_json:
        about = {"source": name, **report.model_dump(exclude={"steps"})}
        print_json({"results": [{"source": name, **step.model_dump()} for step in report.steps], "report": about})
    else:
        for line in report_lines(report):
            print_text(line)
    if report.failed:
        steps = ", ".join(f"'{step.name}'" for step in report.failed)
        raise Failure(f"steps failed for database '{name}': {steps}. The others were taken; run it again later.")


def report_lines(report: UpkeepReport) -> Iterator[str]:
    """One line a step: its name, its outcome, and what was done."""
    for step in report.steps:
        line = f"{step.name}: {step.status}"
        yield one_line(f"{line}: {step.detail}" if step.detail else line)
