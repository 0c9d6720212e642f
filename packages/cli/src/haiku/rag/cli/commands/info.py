"""`haiku-rag info`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.masking import masked_url
from haiku.rag.cli.options import database_option, json_option, tag_option
from haiku.rag.cli.output import print_json, print_text
from haiku.rag.cli.runner import run

if TYPE_CHECKING:
    from haiku.rag.client import HaikuRAG
    from haiku.rag.contracts import DatabaseRef
    from haiku.rag.contracts.storage import DatabaseInfo
    from haiku.rag.models import UpkeepReport


@click.command()
@tag_option
@database_option
@json_option
@pass_invocation
def command(invocation: Invocation, tag: str | None, database_path: str | None, *, as_json: bool) -> None:
    """Show where a database is, what is in it, and the embedding and indexes that it has."""
    scope = invocation.one("info", database_path, tag=tag)
    client = invocation.reader(scope)

    async def read(client: HaikuRAG) -> DatabaseInfo:
        async with client:
            return await client.info()

    info = run(lambda: read(client))
    ref = scope.databases[0]
    if as_json:
        placed = {"source": ref.name, "location": masked_url(ref.location), "tag": ref.tag}
        print_json({"results": [{**placed, **info.model_dump()}]})
        return
    for line in info_lines(ref, info):
        print_text(line)


def info_lines(ref: DatabaseRef, info: DatabaseInfo) -> Iterator[str]:
    """What a database says of itself, and where it is, for a reader."""
    yield f"database: {ref.name}"
    yield f"location: {masked_url(ref.location)}"
    if ref.tag is not None:
        yield f"tag: {ref.tag}"
    yield f"storage: {info.storage}, schema version {info.schema_version}"
    yield f"documents: {info.documents}"
    yield f"chunks: {info.chunks}"
    if info.size_bytes is not None:
        yield f"size: {info.size_bytes / 1e6:.1f} MB"
    if info.updated_at is not None:
        yield f"updated: {info.updated_at:%Y-%m-%d %H:%M:%S}"
    yield f"embedding: {info.identity.describe() if info.identity else 'not recorded'}"
    yield f"language: {info.language or 'none, words are not stemmed'}"
    for name, state in info.indexes.items():
        yield f"index {name}: {state}"
    if info.upkeep is not None:
        yield f"last upkeep: {upkeep_line(info.upkeep)}"


def upkeep_line(upkeep: UpkeepReport) -> str:
    """When upkeep last ran, and what became of it."""
    failed = ", ".join(f"{step.name} failed ({step.detail})" for step in upkeep.failed)
    done = ", ".join(step.name for step in upkeep.steps if step.status == "done")
    return f"{upkeep.finished_at:%Y-%m-%d %H:%M:%S}, {'; '.join(filter(None, [done, failed])) or 'nothing to do'}"
