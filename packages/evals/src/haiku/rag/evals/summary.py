"""A run's figures in short."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel

from haiku.rag.evals.lines import Line
from haiku.rag.evals.variants import Mode


class Latency(BaseModel):
    """How long searches took, in milliseconds: in the middle, and all but the slowest twentieth."""

    p50: float
    p95: float


class Summary(BaseModel):
    """One line: means over all questions, over the datasets' means, and of each dataset.

    `own_share` is the part of the hits that is from the question's own dataset. `search` is the latency without the
    embedding of the question.
    """

    label: str
    mode: Mode
    questions: int
    fused_by: str | None
    reranker: str | None
    rerank_failures: int
    overall: dict[str, float]
    mean_of_datasets: dict[str, float]
    by_dataset: dict[str, dict[str, float]]
    own_share: float
    latency: Latency
    search: Latency


def summary_of(line: Line) -> Summary:
    """The line in short."""
    outcome, questions = line.outcome, line.run.questions
    members: dict[str, list[int]] = {}
    for place, question in enumerate(questions):
        members.setdefault(question.dataset, []).append(place)
    by_dataset = {
        name: {measure: _mean([values[place] for place in places]) for measure, values in outcome.values.items()}
        for name, places in members.items()
    }
    milliseconds = np.array(outcome.milliseconds)
    return Summary(
        label=line.label,
        mode=line.mode,
        questions=len(questions),
        fused_by=outcome.fused_by,
        reranker=outcome.reranker,
        rerank_failures=outcome.rerank_failures,
        overall={measure: _mean(values) for measure, values in outcome.values.items()},
        mean_of_datasets={
            measure: _mean([figures[measure] for figures in by_dataset.values()]) for measure in outcome.values
        },
        by_dataset=by_dataset,
        own_share=_mean(outcome.own_share),
        latency=_latency(milliseconds),
        search=_latency(milliseconds - np.array(outcome.embedding_milliseconds)),
    )


def partner(summaries: Sequence[Summary], summary: Summary, mode: Mode) -> Summary | None:
    """The same way of searching at another place."""
    return next((other for other in summaries if other.label == summary.label and other.mode is mode), None)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _latency(milliseconds: np.ndarray) -> Latency:
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return Latency(p50=float(p50), p95=float(p95))
