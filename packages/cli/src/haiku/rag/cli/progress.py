"""What moves on standard error while something long goes on, where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from haiku.rag.cli.output import one_line


class Step(Protocol):
    """A step of something long."""

    @property
    def done(self) -> int:
        """So many were worked on."""

    @property
    def total(self) -> int:
        """Of so many."""


Show = Callable[[Step], None]


@contextmanager
def progress(label: str) -> Iterator[Show]:
    """Gives what each step is to be shown with; outside a terminal, what shows nothing."""
    if not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(one_line(label), total=None)
        yield lambda step: bar.update(task, total=step.total, completed=step.done)


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Shows that something of unknown length goes on; outside a terminal, nothing."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(one_line(label))):
        yield


def _nothing(step: Step) -> None:
    """There is no terminal to draw on."""
