"""`haiku-rag download-models`."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from haiku.rag.cli.boundary import Failure
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.options import json_option
from haiku.rag.cli.output import notice, print_json, print_text
from haiku.rag.cli.runner import run
from haiku.rag.cli.transfers import size, transfers

if TYPE_CHECKING:
    from haiku.rag.client import ModelDownload
    from haiku.rag.config import AppConfig


@dataclass(kw_only=True)
class Tally:
    """The last word on each model so far; it outlives an interruption."""

    outcomes: list[ModelDownload] = field(default_factory=list)

    async def download(self, config: AppConfig) -> None:
        """Fetch what the configuration names."""
        from haiku.rag.client import download_models

        with transfers() as show:
            async with aclosing(download_models(config)) as steps:
                async for step in steps:
                    if step.outcome == "running":
                        show(step)
                    else:
                        self.outcomes.append(step)

    @property
    def failed(self) -> list[ModelDownload]:
        """The models that could not be had."""
        return [model for model in self.outcomes if model.outcome == "failed"]


@click.command()
@json_option
@pass_invocation
def command(invocation: Invocation, *, as_json: bool) -> None:
    """Fetch the models that the configuration names, so that no search has to.

    Opens no database. What is there already is not fetched again. One that fails does not stop the others.
    """
    config = invocation.config
    tally = Tally()
    try:
        run(lambda: tally.download(config))
    except KeyboardInterrupt:
        _print_lines(tally)
        notice("Interrupted; nothing half fetched will be used. Go on with the same command.")
        raise
    _report(tally, as_json=as_json)


def _report(tally: Tally, *, as_json: bool) -> None:
    if as_json:
        counts = {outcome: len([one for one in tally.outcomes if one.outcome == outcome]) for outcome in _WORDS}
        print_json({"results": [_fields(model) for model in tally.outcomes], "report": counts})
    else:
        _print_lines(tally)
    for model in tally.failed:
        notice(f"Failed: {_titled(model)}: {model.reason}")
    if tally.failed:
        total = len(tally.outcomes)
        raise Failure(f"{len(tally.failed)} of {total} models could not be fetched; the reasons are above.")


def _fields(model: ModelDownload) -> dict[str, Any]:
    return {**model.model_dump(include={"kind", "provider", "model", "outcome", "reason"}), "bytes": model.done}


_WORDS = {
    "fetched": "fetched",
    "present": "is there already",
    "not_needed": "needs no download",
    "failed": "could not be fetched",
}


def _print_lines(tally: Tally) -> None:
    for model in tally.outcomes:
        amount = f", {size(model.done)}" if model.outcome == "fetched" else ""
        print_text(f"{_titled(model)}: {_WORDS[model.outcome]}{amount}.")


def _titled(model: ModelDownload) -> str:
    return f"{model.kind} '{model.provider}'{f' ({model.model})' if model.model else ''}"
