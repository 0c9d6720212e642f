"""`haiku-rag eval populate`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from haiku.rag.client import HaikuRAG
from haiku.rag.errors import AmbiguousDatabaseError, ReadOnlyError
from haiku.rag.evals.commands.output import print_json
from haiku.rag.evals.commands.surroundings import configuration, scope_of
from haiku.rag.evals.commands.working import run_shown
from haiku.rag.evals.loading import load_suite
from haiku.rag.evals.populating import populate
from haiku.rag.evals.progress import OnStep


@click.command("populate")
@click.argument("datasets", nargs=-1, required=True, metavar="DATASET...")
@click.option("--db", "database_path", metavar="PATH", help="A database by its local path, whatever is configured.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def populate_command(datasets: Sequence[str], *, database_path: str | None, as_json: bool) -> None:
    """Store the passages of each DATASET in one database that exists, to measure it with 'eval run --db'.

    Choose the database with --db-name NAME before the command or --db PATH after it, where several are configured.
    """
    config = configuration()
    if getattr(click.get_current_context().obj, "read_only", False):
        raise ReadOnlyError("storing datasets writes, and --read-only was given. Leave --read-only out.")
    scope = scope_of(config, database_path)
    if scope.covers_multiple:
        names = ", ".join(f"'{name}'" for name in scope.names)
        raise AmbiguousDatabaseError(
            f"storing a dataset needs one database, and several are configured: {names}. "
            "Choose one with --db-name NAME before the command, or --db PATH after it."
        )
    suite = load_suite(datasets)

    async def work(on_step: OnStep) -> dict[str, int]:
        async with HaikuRAG.over(scope, config) as client:
            return {one.name: await populate(client, one, on_step=on_step) for one in suite.datasets}

    _show(run_shown(work), scope.names[0], as_json=as_json)


def _show(stored: dict[str, int], source: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"results": [{"source": source, "dataset": name, "passages": n} for name, n in stored.items()]})
        return
    for name, count in stored.items():
        click.echo(f"{count} passages of '{name}' are stored in '{source}'.")
