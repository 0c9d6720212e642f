"""`haiku-rag get`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from haiku.rag.cli.documents import document_fields, document_lines
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.options import database_option, json_option, tag_option
from haiku.rag.cli.output import print_json, print_text
from haiku.rag.cli.runner import run
from haiku.rag.errors import DocumentNotFoundError

if TYPE_CHECKING:
    from haiku.rag.client import HaikuRAG
    from haiku.rag.models import Document


@click.command()
@click.argument("document", metavar="ID_OR_TITLE_OR_URI")
@tag_option
@database_option
@json_option
@pass_invocation
def command(
    invocation: Invocation, document: str, tag: str | None, database_path: str | None, *, as_json: bool
) -> None:
    """Show a document and its text, by its id, its exact title or its URI."""
    scope = invocation.one("showing a document", database_path, tag=tag)
    client = invocation.reader(scope)

    async def read(client: HaikuRAG) -> Document | None:
        async with client:
            return await client.resolve_document(document)

    found = run(lambda: read(client))
    if found is None:
        raise DocumentNotFoundError.within(scope.names[0], document)
    if as_json:
        print_json({"results": [document_fields(found, content=True)]})
        return
    for line in document_lines(found):
        print_text(line)
