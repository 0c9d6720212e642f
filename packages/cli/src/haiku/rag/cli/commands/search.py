"""`haiku-rag search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from haiku.rag.cli.explain import explain_lines
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.options import (
    database_option,
    filter_option,
    json_option,
    limit_option,
    numbers_option,
    tag_option,
)
from haiku.rag.cli.output import notice, print_json, print_text, warning
from haiku.rag.cli.results import result_lines
from haiku.rag.cli.runner import run
from haiku.rag.errors import AmbiguousDatabaseError

if TYPE_CHECKING:
    from haiku.rag.client import DatabaseScope, HaikuRAG
    from haiku.rag.models import SearchReport, SearchResults


def _names(_: click.Context, __: click.Parameter, value: str | None) -> Literal["raise", "skip"] | list[str] | None:
    if value is None or value in ("raise", "skip"):
        return cast("Literal['raise', 'skip'] | None", value)
    return [name.strip() for name in value.split(",") if name.strip()]


@click.command()
@click.argument("query")
@limit_option("At most N results.")
@click.option("--source", "sources", multiple=True, metavar="NAME", help="Search this database only. Repeatable.")
@click.option(
    "--search-type", "-s", type=click.Choice(["hybrid", "vector", "fts"]), default="hybrid", show_default=True
)
@filter_option
@click.option("--fusion", metavar="NAME", help="How candidates are ranked, such as cosine or rrf.")
@numbers_option("--weight", "A database's weight: 0 leaves it out, 1 changes nothing.")
@numbers_option("--boost", "A priority that is added to a database's scores.")
@click.option(
    "--dedupe/--no-dedupe", default=None, help="Show a passage that several databases hold once, and name them."
)
@click.option("--min-score", type=float, metavar="X", help="Leave out what scores below X.")
@click.option(
    "--on-unavailable",
    callback=_names,
    metavar="raise|skip|NAMES",
    help="What a database that does not answer means: an error, or to go without it unless it is among NAMES.",
)
@click.option("--explain", is_flag=True, help="Show how the results came about.")
@tag_option
@database_option
@json_option
@pass_invocation
def command(
    invocation: Invocation,
    /,
    *,
    query: str,
    sources: Sequence[str],
    tag: str | None,
    database_path: str | None,
    explain: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Search the configured databases as one, or those that are chosen."""
    if not query.strip():
        raise ValueError("the query is empty: say what to look for")
    scope = _scope(invocation, sources, tag, database_path)
    results = run(partial(_search, invocation.searcher(scope), query, _arguments(sources, asked)))
    spanned = len(set(sources) or scope.names)
    _warn(results.report)
    if as_json:
        print_json({"results": list(results), "report": results.report})
        return
    for number, result in enumerate(results, 1):
        for line in result_lines(number, result, labelled=spanned > 1):
            print_text(line)
    if explain:
        for line in explain_lines(results.report):
            print_text(line)
    if not results:
        below = results.report.below_min_score
        notice("Nothing was found." + (f" {below} candidates scored below the least score." if below else ""))


def _scope(invocation: Invocation, sources: Sequence[str], tag: str | None, database_path: str | None) -> DatabaseScope:
    if sources and (database_path is not None or invocation.database_name is not None):
        raise AmbiguousDatabaseError("--source and --db or --db-name both choose the databases. Give one of them.")
    if tag is not None:
        return invocation.one("reading at a tag", database_path, tag=tag)
    return invocation.covered(database_path)


def _arguments(sources: Sequence[str], asked: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {"weight": "weights", "boost": "boosts"}
    arguments = {renamed.get(name, name): value for name, value in asked.items()}
    return {**arguments, "sources": list(sources) or None}


async def _search(client: HaikuRAG, query: str, arguments: Mapping[str, Any]) -> SearchResults:
    async with client:
        return await client.search(query, **arguments)


def _warn(report: SearchReport) -> None:
    for entry in report.left_out:
        warning(f"database '{entry.name}' was left out ({entry.status}): {entry.reason}")
    for text in report.warnings:
        warning(text)
    if report.rerank.startswith("failed"):
        warning(f"reranking {report.rerank}; the fused order stands.")
