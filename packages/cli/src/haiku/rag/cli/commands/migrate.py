"""`haiku-rag migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.maintenance import run_long
from haiku.rag.cli.options import database_option, dry_run_option, json_option
from haiku.rag.cli.output import notice, one_line, print_json, print_text

if TYPE_CHECKING:
    from haiku.rag.contracts import Migration


@click.command()
@dry_run_option
@database_option
@json_option
@pass_invocation
def command(invocation: Invocation, *, dry_run: bool, database_path: str | None, as_json: bool) -> None:
    """Take a database of an older schema to the current one, step by step.

    Broken off at any point it leaves the database whole, and goes on with the same command.
    """
    scope = invocation.live("migrating", database_path, writes=not dry_run)
    name = scope.names[0]

    async def migrated() -> list[Migration]:
        from haiku.rag.client import migrate, pending_migrations

        return await (pending_migrations if dry_run else migrate)(scope, invocation.config)

    steps = run_long(
        f"{name}: migrate",
        migrated,
        interrupted=f"database '{name}' is whole, at one of the versions. Go on with the same command.",
    )
    if as_json:
        results = [{"source": name, **step.model_dump()} for step in steps]
        print_json({"results": results, "report": {"source": name, "dry_run": dry_run}})
        return
    for step in steps:
        print_text(one_line(f"version {step.version}: {step.summary}"))
    if not steps:
        notice(f"Database '{name}' has the current schema; there is nothing to do.")
