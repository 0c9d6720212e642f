"""`haiku-rag create-index`."""

import click

from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.maintenance import run_on
from haiku.rag.cli.options import database_option, json_option
from haiku.rag.cli.output import notice, one_line, print_json, print_text


@click.command()
@database_option
@json_option
@pass_invocation
def command(invocation: Invocation, database_path: str | None, *, as_json: bool) -> None:
    """Build every index again, and the vector index however small the database is.

    Indexes are built and kept up by themselves; this is for one that is in doubt. Searching goes on meanwhile.
    """
    client = invocation.writer("building indexes", database_path, any_embedding=True)
    indexes = run_on(client, "building indexes", lambda opened: opened.create_index())
    name = client.source_names[0]
    if as_json:
        print_json({"results": [{"source": name, "indexes": indexes}]})
        return
    for index, state in indexes.items():
        print_text(one_line(f"index {index}: {state}"))
    if not indexes:
        notice(f"Database '{name}' has no indexes.")
