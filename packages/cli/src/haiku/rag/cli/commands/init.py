"""`haiku-rag init`."""

import click

from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.masking import masked_url
from haiku.rag.cli.options import database_option, json_option
from haiku.rag.cli.output import print_json, print_text
from haiku.rag.cli.runner import run
from haiku.rag.errors import SourceUnavailableError

OPERATION = "creating a database"


@click.command()
@database_option
@json_option
@pass_invocation
def command(invocation: Invocation, database_path: str | None, *, as_json: bool) -> None:
    """Create a database. One that is there already is left as it is."""
    created = run(lambda: _created(invocation, database_path))
    ref = invocation.one(OPERATION, database_path).databases[0]
    location = masked_url(ref.location)
    if as_json:
        print_json({"results": [{"source": ref.name, "location": location, "created": created}]})
    elif created:
        print_text(f"Created database '{ref.name}' at {location}.")
    else:
        print_text(f"Database '{ref.name}' exists already at {location}.")


async def _created(invocation: Invocation, database_path: str | None) -> bool:
    creator = invocation.writer(OPERATION, database_path, create=True)
    try:
        async with invocation.reader(invocation.one(OPERATION, database_path)):
            return False
    except SourceUnavailableError:  # it is missing; or it is broken, and then creating says so
        async with creator:
            return True
