"""What the parts of `ranking.py` share: what is measured with what, and the bars."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from haiku.rag.config import AppConfig
from haiku.rag.evals.commands.output import print_tables
from haiku.rag.evals.datasets import Suite
from haiku.rag.evals.lines import Line, lines_of
from haiku.rag.evals.progress import Step
from haiku.rag.evals.run_file import Run, save_run
from haiku.rag.evals.running import evaluate
from haiku.rag.evals.summary import Summary, summary_of
from haiku.rag.evals.tables import tables_of
from haiku.rag.evals.variants import Mode, Variant
from haiku.rag.evals.workspace import Workspace

MEASURE = "nDCG@10"
SPREAD = (Mode.FEDERATED, Mode.POOLED)


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A figure and what it has to reach: at least or at most."""

    what: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def held(self) -> bool:
        """Whether it does."""
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    @property
    def line(self) -> str:
        """The bar as a row of a table."""
        wanted = f"≥ {self.least:g}" if self.least is not None else f"≤ {self.most:g}"
        return f"| {self.what} | {self.value:.3f} | {wanted} | {'held' if self.held else 'MISSED'} |"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What is measured with what."""

    suite: Suite
    config: AppConfig
    workspace: Workspace
    strategy: str
    reranker: str | None
    max_questions: int | None

    async def run(
        self,
        name: str,
        variants: Sequence[Variant],
        *,
        modes: Sequence[Mode] = SPREAD,
        suite: Suite | None = None,
        language: str = "none",
    ) -> Run:
        """Measure a part, print it, and keep it beside the databases."""
        print(f"\n## {name}\n", flush=True)
        run = await evaluate(
            suite or self.suite,
            self.config,
            variants=variants,
            modes=modes,
            workspace=self.workspace,
            language=language,
            max_questions=self.max_questions,
            on_step=tell,
        )
        folder = self.workspace.folder / "runs"
        folder.mkdir(parents=True, exist_ok=True)
        save_run(run, folder / f"{name.replace(' ', '-')}.json")
        print_tables(tables_of(lines_of({"": run})))
        return run


def tell(step: Step) -> None:
    """A line on standard error for each tenth of something long, so that a log shows that it goes on."""
    tenth = max(1, step.total // 10)
    if step.done == step.total or (step.total > 5_000 and step.done % tenth < 512):
        print(f"{step.label}: {step.done} of {step.total}", file=sys.stderr, flush=True)


def line_of(run: Run, variant: Variant, mode: Mode) -> Line:
    """The line of a way of searching at a place."""
    return next(line for line in lines_of({"": run}) if (line.label, line.mode) == (variant.label, mode))


def short(run: Run, variant: Variant, mode: Mode) -> Summary:
    """The same in short."""
    return summary_of(line_of(run, variant, mode))


def quality_ratio(run: Run, variant: Variant) -> float:
    """Federated over pooled."""
    several, one = (short(run, variant, mode).overall[MEASURE] for mode in SPREAD)
    return several / one


def time_ratio(run: Run, variant: Variant) -> float:
    """Median time federated over pooled, the question's embedding left out of both."""
    several, one = (short(run, variant, mode).search.p50 for mode in SPREAD)
    return several / one
