"""`haiku-rag rebuild`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from haiku.rag.cli.boundary import Failure
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.options import database_option, json_option
from haiku.rag.cli.output import notice, print_json, print_text
from haiku.rag.cli.progress import progress
from haiku.rag.cli.runner import run
from haiku.rag.models import RebuildMode, RebuildStep

if TYPE_CHECKING:
    from haiku.rag.client import HaikuRAG


@dataclass(kw_only=True)
class Tally:
    """What became of the documents so far; it outlives an interruption."""

    mode: RebuildMode
    source: str
    counts: Counter[str] = field(default_factory=Counter)
    told: list[RebuildStep] = field(default_factory=list)

    async def rebuild(self, client: HaikuRAG) -> None:
        """Rebuild the client's database."""
        with progress(f"{self.source}: {self.mode}") as show:
            async for step in client.rebuild(self.mode):
                self.counts[step.outcome] += 1
                self.told += [step] if step.reason else []
                show(step)

    @property
    def summary(self) -> str:
        """How many were rebuilt."""
        if self.mode is RebuildMode.REINDEX:
            return f"Built the indexes of '{self.source}' again."
        count = self.counts["rebuilt"]
        return f"Rebuilt {count} document{'' if count == 1 else 's'} of '{self.source}' ({self.mode})."

    def of(self, outcome: str) -> list[RebuildStep]:
        """The steps of an outcome about which there is something to say."""
        return [step for step in self.told if step.outcome == outcome]


@click.command()
@click.option("--full", is_flag=True, help="Fetch and convert every source again. The default.")
@click.option("--rechunk", is_flag=True, help="Cut what is stored into chunks again.")
@click.option("--embed-only", is_flag=True, help="Keep the chunks and make their vectors again.")
@click.option("--reindex", is_flag=True, help="Build the indexes again, with lancedb.fts_language as it is now.")
@database_option
@json_option
@pass_invocation
def command(invocation: Invocation, /, database_path: str | None, *, as_json: bool, **modes: bool) -> None:
    """Make every document of a database anew.

    Needed after another embedding model, chunk size or converter is configured. Readers see whole documents all the
    while. Broken off at any point, it goes on with the same command. A document that fails does not stop the others.
    """
    client = invocation.writer("rebuilding", database_path, any_embedding=True)
    tally = Tally(mode=_mode(modes), source=client.source_names[0])

    async def rebuild() -> None:
        async with client:
            await tally.rebuild(client)

    try:
        run(rebuild)
    except BaseException as error:
        _notices(tally)
        if tally.counts:
            how = "Interrupted" if isinstance(error, KeyboardInterrupt) else "Stopped"
            notice(f"{how}; every document of '{tally.source}' is whole. Go on with the same command.")
        raise
    _report(tally, as_json=as_json)


def _mode(flags: dict[str, bool]) -> RebuildMode:
    chosen = [name.replace("_", "-") for name, given in flags.items() if given]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(f'--{name}' for name in chosen)} were given. Give one of them.")
    return RebuildMode(chosen[0]) if chosen else RebuildMode.FULL


def _report(tally: Tally, *, as_json: bool) -> None:
    failures = tally.counts["failed"]
    if as_json:
        counts = {outcome: tally.counts[outcome] for outcome in ("rebuilt", "left", "failed")}
        results = [{"source": tally.source, "mode": str(tally.mode), **counts}]
        about = [step.model_dump(include={"document_id", "uri", "outcome", "reason"}) for step in tally.told]
        print_json({"results": results, "report": {"source": tally.source, "steps": about}})
    else:
        print_text(tally.summary)
    _notices(tally)
    if failures:
        raise Failure(f"{failures} of the documents could not be rebuilt; the reasons are above.")


def _notices(tally: Tally) -> None:
    for step in tally.of("note") if tally.mode is not RebuildMode.REINDEX else ():  # whose summary says it all
        notice(f"Note: {step.reason}.")
    for step in tally.of("rebuilt"):
        notice(f"From what is stored: {step.uri}: {step.reason}")
    for step in tally.of("left"):
        notice(f"Left: {step.uri}: {step.reason}.")
    for step in tally.of("failed"):
        notice(f"Failed: {step.uri}: {step.reason}")
