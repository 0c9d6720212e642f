"""Running something long: what moves on a terminal meanwhile, and what Ctrl-C leaves."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TypeVar

import anyio
import click

from haiku.rag.evals.progress import OnStep, Step, unseen

T = TypeVar("T")


def run_shown(work: Callable[[OnStep], Awaitable[T]]) -> T:
    """Run the work to its end, its steps shown. Ctrl-C cancels it, says what is left, and is raised."""
    try:
        with redirect_stdout(sys.stderr), shown_steps() as on_step:
            return anyio.run(work, on_step, backend="asyncio")
    except KeyboardInterrupt:
        click.echo("Interrupted; what was embedded and stored is kept, and the next run goes on from there.", err=True)
        raise


@contextmanager
def shown_steps() -> Iterator[OnStep]:
    """What shows each step on standard error, where that is a terminal; each label has a bar of its own."""
    if not sys.stderr.isatty():
        yield unseen
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=None)

        def show(step: Step) -> None:
            bars.update(task, description=step.label, total=step.total, completed=step.done)

        yield show
