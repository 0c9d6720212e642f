"""`haiku-rag list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from haiku.rag.cli.documents import document_fields, document_line
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.options import database_option, filter_option, json_option, limit_option, tag_option
from haiku.rag.cli.output import notice, print_json, print_text
from haiku.rag.cli.runner import run

if TYPE_CHECKING:
    from haiku.rag.client import HaikuRAG
    from haiku.rag.models import Document


@click.command()
@limit_option("At most N documents.")
@click.option("--offset", type=click.IntRange(min=0), default=0, metavar="N", help="Leave out the first N.")
@filter_option
@tag_option
@database_option
@json_option
@pass_invocation
def command(
    invocation: Invocation,
    *,
    limit: int | None,
    offset: int,
    filter: str | None,
    tag: str | None,
    database_path: str | None,
    as_json: bool,
) -> None:
    """List documents by creation: id, title, URI."""
    client = invocation.reader(invocation.one("listing documents", database_path, tag=tag))

    async def read(client: HaikuRAG) -> list[Document]:
        async with client:
            return await client.list_documents(limit, offset, filter=filter)

    documents = run(lambda: read(client))
    if as_json:
        print_json({"results": [document_fields(document) for document in documents]})
        return
    for document in documents:
        print_text(document_line(document))
    if not documents:
        notice("There are no documents to list.")
