"""Asking: every case, in every way and place, in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from haiku.rag.contracts import Filter
from haiku.rag.evals.datasets import Case, key_of
from haiku.rag.evals.measuring import figures
from haiku.rag.evals.places import Place
from haiku.rag.evals.progress import OnStep, Step
from haiku.rag.evals.run_file import Outcome
from haiku.rag.evals.variants import NO_RERANKER, Variant


@dataclass(kw_only=True)
class Recorder:
    """What one way of searching found at one place."""

    variant: Variant
    place: Place
    cases: Sequence[Case]
    fused_by: str | None = None
    rerank_failures: int = 0
    rankings: list[dict[str, float]] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    embedding: list[float] = field(default_factory=list)

    async def ask(self, case: Case, *, limit: int, filter: str | Filter | None, record: bool = True) -> None:
        """Search for the case, and note what came of it."""
        started = perf_counter()
        results = await self.place.client.search(
            case.text,
            limit,
            search_type=self.variant.search_type,
            filter=filter,
            sources=self.place.sources(case),
            fusion=self.variant.fusion,
        )
        took = (perf_counter() - started) * 1000
        if not record:
            return
        report = results.report
        self.fused_by = report.fusion or self.fused_by
        self.rerank_failures += (report.rerank or "").startswith("failed")
        self.rankings.append(self.place.ranking(results))
        self.milliseconds.append(took)
        self.embedding.append(report.stages.get("embed", 0.0))

    @property
    def knows_a_passage(self) -> bool:
        """Whether something that was found is a passage of the datasets."""
        known = set(self.place.keys.values())
        return any(key in known for ranking in self.rankings for key in ranking)

    def outcome(self, measures: dict[str, str]) -> Outcome:
        """The figures."""
        judged = [self.place.judged(case) for case in self.cases]
        return Outcome(
            label=self.variant.label,
            mode=self.place.mode,
            search_type=self.variant.search_type,
            fusion=self.variant.fusion,
            reranker=None if self.variant.reranker == NO_RERANKER else self.variant.reranker,
            fused_by=self.fused_by,
            rerank_failures=self.rerank_failures,
            values=figures(judged, [list(ranking) for ranking in self.rankings], measures),
            own_share=[_own_share(case, ranking) for case, ranking in zip(self.cases, self.rankings, strict=True)],
            milliseconds=self.milliseconds,
            embedding_milliseconds=self.embedding,
            hits=[list(ranking) for ranking in self.rankings],
            scores=[list(ranking.values()) for ranking in self.rankings],
        )


async def ask_all(
    cases: Sequence[Case],
    variants: Sequence[Variant],
    places: Sequence[Place],
    *,
    limit: int,
    filter: str | Filter | None,
    on_step: OnStep,
) -> list[Recorder]:
    """Ask case by case: each in every place and way before the next, so that none has a quieter machine than others.

    The first case is asked once without being recorded, because it opens the databases and loads the models.
    """
    recorders = [Recorder(variant=variant, place=place, cases=cases) for variant in variants for place in places]
    label = "asking" if len(recorders) == 1 else f"asking, in {len(recorders)} ways"
    for recorder in recorders:
        await recorder.ask(cases[0], limit=limit, filter=filter, record=False)
    for done, case in enumerate(cases):
        on_step(Step(label=label, done=done, total=len(cases)))
        for recorder in recorders:
            await recorder.ask(case, limit=limit, filter=filter)
    on_step(Step(label=label, done=len(cases), total=len(cases)))
    return recorders


def _own_share(case: Case, ranking: dict[str, float]) -> float:
    own = key_of(case.dataset, "")
    return sum(key.startswith(own) for key in ranking) / len(ranking) if ranking else 0.0
