"""`haiku-rag add-src`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from haiku.rag.cli.boundary import Failure
from haiku.rag.cli.documents import document_fields
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.options import database_option, json_option, metadata_option, title_option
from haiku.rag.cli.output import notice, print_json, print_text
from haiku.rag.cli.progress import progress
from haiku.rag.cli.runner import run
from haiku.rag.errors import ConversionError, UnsupportedSourceError
from haiku.rag.models.text import shown_address

if TYPE_CHECKING:
    from haiku.rag.client import HaikuRAG, IngestFailure
    from haiku.rag.models import Document


@dataclass(kw_only=True)
class Tally:
    """What was stored and what failed so far; it outlives an interruption."""

    stored: list[Document] = field(default_factory=list)
    failures: list[IngestFailure] = field(default_factory=list)

    async def add(self, client: HaikuRAG, source: str, title: str | None, metadata: Mapping[str, Any]) -> None:
        """Store one source. What cannot be read is a failure among others; any other error is raised."""
        steps = 0
        try:
            with progress(shown_address(source)) as show:
                async for step in client.ingest(source, title=title, metadata=metadata):
                    steps += 1
                    self.stored += [document.model_copy(update={"content": None}) for document in step.stored]
                    self.failures += [step.failure] if step.failure else []
                    show(step)
        except (ConversionError, UnsupportedSourceError) as error:
            self._fail(source, str(error))
            return
        if not steps:
            self._fail(source, "it holds no file that an installed converter reads.")

    def _fail(self, source: str, reason: str) -> None:
        from haiku.rag.client import IngestFailure

        self.failures.append(IngestFailure(uri=shown_address(source), reason=reason))


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@title_option
@metadata_option
@database_option
@json_option
@pass_invocation
def command(
    invocation: Invocation,
    *,
    sources: Sequence[str],
    title: str | None,
    metadata: Mapping[str, Any],
    database_path: str | None,
    as_json: bool,
) -> None:
    """Store each SOURCE: a file, a folder with all that can be read in it, or a URL.

    What is stored already and has not changed is left as it is. One that fails does not stop the others.
    """
    tally = Tally()
    client = invocation.writer("adding documents", database_path)

    async def store() -> None:
        async with client:
            for source in sources:
                await tally.add(client, source, title, metadata)

    try:
        run(store)
    except BaseException as error:
        how = "Interrupted" if isinstance(error, KeyboardInterrupt) else "Stopped"
        notice(f"{how}; what was committed stays: {_stored(tally)} in '{client.source}'.")
        raise
    _report(tally, str(client.source), as_json=as_json)


def _stored(tally: Tally) -> str:
    count = len(tally.stored)
    return f"{count} document{' is' if count == 1 else 's are'} stored"


def _report(tally: Tally, database: str, *, as_json: bool) -> None:
    if as_json:
        results = [document_fields(document) for document in tally.stored]
        print_json({"results": results, "report": {"source": database, "failures": tally.failures}})
    else:
        print_text(f"{_stored(tally)} in '{database}'.")
    for failure in tally.failures:
        notice(f"Failed: {failure.uri}: {failure.reason}")
    if tally.failures:
        total = len(tally.stored) + len(tally.failures)
        raise Failure(f"{len(tally.failures)} of {total} could not be stored; the reasons are above.")
