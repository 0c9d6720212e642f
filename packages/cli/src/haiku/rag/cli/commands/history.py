"""`haiku-rag history`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.maintenance import run_on
from haiku.rag.cli.options import database_option, json_option, limit_option
from haiku.rag.cli.output import notice, one_line, print_json, print_text

if TYPE_CHECKING:
    from haiku.rag.contracts import HistoryEntry

OPERATION = "reading the history"


@click.command()
@limit_option("At most N states, the newest.")
@database_option
@json_option
@pass_invocation
def command(invocation: Invocation, *, limit: int | None, database_path: str | None, as_json: bool) -> None:
    """List the states of a database that can still be told apart, newest first, with the tags on them."""
    client = invocation.reader(invocation.live(OPERATION, database_path, writes=False), any_embedding=True)
    entries = run_on(client, "history", lambda opened: opened.history(limit))
    if as_json:
        print_json({"results": [{"source": client.source, **entry.model_dump()} for entry in entries]})
        return
    for line in history_lines(entries):
        print_text(line)
    if not entries:
        notice("There is no history to list.")


def history_lines(entries: Sequence[HistoryEntry]) -> Iterator[str]:
    """One line a state: its moment in UTC, the part and version, what made it, and its tags."""
    for entry in entries:
        tags = f"  [{', '.join(entry.tags)}]" if entry.tags else ""
        yield f"{entry.at:%Y-%m-%d %H:%M:%S}  {one_line(f'{entry.part} {entry.version}: {entry.operation}')}{tags}"
