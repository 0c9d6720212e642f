"""The weight of `calibrated`, chosen on all collections but one and measured on that one, each in turn."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from ranking_bench import MEASURE, Bar, Bench, line_of

from haiku.rag.config import AppConfig
from haiku.rag.evals.variants import Mode, Variant

WEIGHTS = (0.4, 0.5, 0.6, 0.7, 0.8)
STRATEGY = "calibrated"

ByCollection = dict[str, list[float]]
"""The measure of each question, by the name of its collection."""


async def held_out(bench: Bench) -> list[Bar]:
    """What the weight reaches on questions that it was not chosen on."""
    if bench.strategy != STRATEGY:
        return []
    found = {weight: await measured(bench, weight) for weight in WEIGHTS}
    unseen: ByCollection = {}
    for name in found[WEIGHTS[0]]:
        chosen = max(WEIGHTS, key=lambda weight: mean_of_collections(found[weight], without=name))
        unseen[name] = found[chosen][name]
        print(f"{name}: {chosen} is best on the others; {fmean(unseen[name]):.3f} here")
    questions = [value for values in unseen.values() for value in values]
    label = f"hybrid, {STRATEGY}, each collection held out"
    return [
        Bar(what=f"{label}: all questions", value=fmean(questions), least=0.66),
        Bar(what=f"{label}: mean of collections", value=mean_of_collections(unseen), least=0.58),
    ]


async def measured(bench: Bench, weight: float) -> ByCollection:
    """Every question asked of all databases, with this weight."""
    way = Variant(fusion=STRATEGY)
    other = replace(bench, config=weighing(bench.config, weight))
    run = await other.run(f"hybrid, similarity {weight}", [way], modes=[Mode.FEDERATED])
    values = line_of(run, way, Mode.FEDERATED).outcome.values[MEASURE]
    found: ByCollection = {}
    for question, value in zip(run.questions, values, strict=True):
        found.setdefault(question.key[0], []).append(value)
    return found


def weighing(config: AppConfig, weight: float) -> AppConfig:
    """The configuration with `search.calibrated.similarity` set."""
    calibrated = config.search.calibrated.model_copy(update={"similarity": weight})
    return config.model_copy(update={"search": config.search.model_copy(update={"calibrated": calibrated})})


def mean_of_collections(found: ByCollection, *, without: str | None = None) -> float:
    """Each collection counts once."""
    return fmean(fmean(values) for name, values in found.items() if name != without)
