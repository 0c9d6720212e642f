"""The options and arguments that several commands share."""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


def _metadata(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, Any]:
    return {key: _coerced(value) for key, value in map(_pair, values)}


def _numbers(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, float] | None:
    return {name: _number(value) for name, value in map(_pair, values)} or None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.BadParameter(f"'{text}' is not of the form KEY=VALUE.")
    return key.strip(), value


def _coerced(value: str) -> Any:
    """JSON where it is JSON, else the text: `year=2024` is a number, `year="2024"` and `year=MMXXIV` are texts."""
    try:
        return json.loads(value, parse_constant=_refused)
    except (ValueError, RecursionError):
        return value


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"'{value}' is not a number.") from None


def database_option(function: Function) -> Function:
    """`--db PATH`."""
    option = click.option(
        "--db", "database_path", metavar="PATH", help="A database by its local path, whatever is configured."
    )
    return option(function)


def json_option(function: Function) -> Function:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def tag_option(function: Function) -> Function:
    """`--at TAG`."""
    return click.option("--at", "tag", metavar="TAG", help="Read the database as it was at a tag.")(function)


def dry_run_option(function: Function) -> Function:
    """`--dry-run`."""
    return click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")(function)


def filter_option(function: Function) -> Function:
    """`--filter/-f`."""
    return click.option("--filter", "-f", metavar="FILTER", help="Only documents that the filter selects.")(function)


def limit_option(help: str) -> Callable[[Function], Function]:
    """`--limit/-l`."""
    return click.option("--limit", "-l", type=click.IntRange(min=1), metavar="N", help=help)


def title_option(function: Function) -> Function:
    """`--title`."""
    return click.option("--title", help="The title, instead of the document's own.")(function)


def metadata_option(function: Function) -> Function:
    """`--meta KEY=VALUE`, repeatable."""
    option = click.option(
        "--meta",
        "metadata",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_metadata,
        help="Metadata; a value that is JSON is taken as such. Repeatable.",
    )
    return option(function)


def numbers_option(name: str, help: str) -> Callable[[Function], Function]:
    """An option `NAME=X`, repeatable: a number for each database."""
    return click.option(name, multiple=True, metavar="NAME=X", callback=_numbers, help=f"{help} Repeatable.")
