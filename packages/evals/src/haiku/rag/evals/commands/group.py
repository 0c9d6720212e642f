"""`haiku-rag eval`: the group."""

import click

from haiku.rag.evals.commands.compare import compare_command
from haiku.rag.evals.commands.populate import populate_command
from haiku.rag.evals.commands.report import report_command
from haiku.rag.evals.commands.run import run_command


@click.group()
def command() -> None:
    """Measure how well databases are searched: ask judged questions, and see what is found."""


command.add_command(run_command)
command.add_command(compare_command)
command.add_command(report_command)
command.add_command(populate_command)
