"""What the commands print: tables for readers, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import click

from haiku.rag.evals.tables import Table

PLAIN_WIDTH = 200


def print_tables(tables: Iterable[Table]) -> None:
    """The tables, one below the other."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)
    for table in tables:
        shown = RichTable(box=SIMPLE_HEAD, title=Text(table.title), title_justify="left", pad_edge=False)
        for place, column in enumerate(table.columns):
            shown.add_column(Text(column), justify="left" if place < table.texts else "right", overflow="fold")
        for row in table.rows:
            shown.add_row(*map(_cell, row))
        console.print(shown)
        if table.note:
            console.print(Text(table.note))
        console.print()


def print_json(value: Any) -> None:
    """Data as one JSON document in UTF-8."""
    from pydantic_core import to_jsonable_python

    plain = to_jsonable_python(value, inf_nan_mode="null")
    click.echo(json.dumps(plain, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n", nl=False)


def warning(text: str) -> None:
    """A line about something that went wrong without stopping the command."""
    click.echo(f"Warning: {text}", err=True)


def _cell(text: str) -> Any:
    from rich.text import Text

    return Text(" ".join(character_free(text).split()))


def character_free(text: str) -> str:
    """The text without the control characters that a terminal would act on."""
    return "".join(character for character in text if character.isprintable() or character.isspace())
