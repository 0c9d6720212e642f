"""`haiku-rag delete`, which is `haiku-rag rm` too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.options import database_option, json_option
from haiku.rag.cli.output import print_json, print_text
from haiku.rag.cli.runner import run
from haiku.rag.errors import DocumentNotFoundError

if TYPE_CHECKING:
    from haiku.rag.client import HaikuRAG


@click.command()
@click.argument("document_id", metavar="ID")
@database_option
@json_option
@pass_invocation
def command(invocation: Invocation, document_id: str, database_path: str | None, *, as_json: bool) -> None:
    """Delete a document with all its parts, by its id."""
    client = invocation.writer("deleting a document", database_path)

    async def delete(client: HaikuRAG) -> bool:
        async with client:
            return await client.delete_document(document_id)

    deleted = run(lambda: delete(client))
    if not deleted:
        raise DocumentNotFoundError.within(client.source_names[0], document_id)
    if as_json:
        print_json({"results": [{"id": document_id, "source": client.source}]})
    else:
        print_text(f"Deleted document {document_id} from '{client.source}'.")
