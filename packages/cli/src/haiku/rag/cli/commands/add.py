"""`haiku-rag add`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import click

from haiku.rag.cli.documents import document_fields
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.options import database_option, json_option, metadata_option, title_option
from haiku.rag.cli.output import print_json, print_text
from haiku.rag.cli.runner import run
from haiku.rag.errors import ConversionError

if TYPE_CHECKING:
    from haiku.rag.client import HaikuRAG
    from haiku.rag.client.client import Format
    from haiku.rag.models import Document


@click.command()
@click.argument("text")
@title_option
@click.option("--uri", help="Where the text is from: its key. A text of the same URI is replaced.")
@metadata_option
@click.option("--format", "format", type=click.Choice(["md", "html", "plain"]), default="md", show_default=True)
@database_option
@json_option
@pass_invocation
def command(
    invocation: Invocation,
    *,
    text: str,
    database_path: str | None,
    title: str | None,
    uri: str | None,
    metadata: Mapping[str, Any],
    format: str,
    as_json: bool,
) -> None:
    """Store TEXT as a document; '-' reads it from standard input."""
    content = _standard_input() if text == "-" else text
    client = invocation.writer("adding a document", database_path)
    kind = cast("Format", format)

    async def store(client: HaikuRAG) -> Document:
        async with client:
            return await client.create_document(content, uri=uri, title=title, metadata=metadata, format=kind)

    document = run(lambda: store(client))
    if as_json:
        print_json({"results": [document_fields(document)]})
    else:
        print_text(f"Stored document {document.id} in '{document.source}'.")


def _standard_input() -> str:
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConversionError(
            "the text on standard input is not UTF-8. Convert it, or store it as a file with: haiku-rag add-src FILE"
        ) from None
