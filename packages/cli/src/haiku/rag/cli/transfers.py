"""What is shown while bytes come in: a bar on a terminal, a line for each tenth elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from haiku.rag.cli.output import notice, one_line

if TYPE_CHECKING:
    from rich.progress import TaskID


class Transfer(Protocol):
    """How far something is that comes in."""

    @property
    def part(self) -> str:
        """What it is."""

    @property
    def done(self) -> int:
        """So many bytes are there."""

    @property
    def total(self) -> int | None:
        """Of so many, where that is known."""


Show = Callable[[Transfer], None]


@contextmanager
def transfers() -> Iterator[Show]:
    """Gives what each step is to be shown with, on standard error."""
    if not sys.stderr.isatty():
        yield Lines().show
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: Transfer) -> None:
            if step.part not in tasks:
                tasks[step.part] = bars.add_task(one_line(step.part), total=step.total)
            bars.update(tasks[step.part], total=step.total, completed=step.done)

        yield show


class Lines:
    """Prints a line when something begins to come in, and one for each tenth of it."""

    def __init__(self) -> None:
        self._tenths: dict[str, int] = {}

    def show(self, step: Transfer) -> None:
        """Print a line, unless the last one says as much."""
        tenth = 10 * step.done // step.total if step.total else 0
        if tenth > self._tenths.get(step.part, -1):
            self._tenths[step.part] = tenth
            notice(f"Fetching {step.part}: {size(step.done)}{f' of {size(step.total)}' if step.total else ''}")


def size(count: int) -> str:
    """So many bytes, in a unit that suits them."""
    from rich.filesize import decimal

    return decimal(count)
