"""One measurement, from datasets to a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from haiku.rag.client import DatabaseScope
from haiku.rag.config import AppConfig
from haiku.rag.contracts import Embedder, Filter
from haiku.rag.evals.asking import Recorder, ask_all
from haiku.rag.evals.configured import embedder_name, engine_of, for_measuring, with_reranking
from haiku.rag.evals.datasets import Case, Suite, drawn, restricted
from haiku.rag.evals.errors import EvalError
from haiku.rag.evals.measuring import measures_for
from haiku.rag.evals.places import Layout, open_places
from haiku.rag.evals.populating import Populator
from haiku.rag.evals.progress import OnStep, unseen
from haiku.rag.evals.run_file import DatasetFacts, Question, Run, Settings
from haiku.rag.evals.surroundings import machine, versions
from haiku.rag.evals.variants import Mode, Variant, reranking_model
from haiku.rag.evals.workspace import Workspace

DEFAULT_LIMIT = 10


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What `evaluate` was asked for beside datasets and variants."""

    limit: int
    filter: str | Filter | None
    language: str | None
    max_questions: int | None
    seed: int


async def evaluate(
    suite: Suite,
    config: AppConfig,
    *,
    variants: Sequence[Variant] = (Variant(),),
    modes: Sequence[Mode] | None = None,
    workspace: Workspace | None = None,
    scope: DatabaseScope | None = None,
    limit: int = DEFAULT_LIMIT,
    filter: str | Filter | None = None,
    language: str | None = None,
    max_questions: int | None = None,
    seed: int = 0,
    on_step: OnStep = unseen,
) -> Run:
    """Ask every question in every way and place, and say how well each did.

    Databases are made in the workspace, or found there: one for each dataset, and one of all of them. With `scope`
    these databases are searched instead, as they are. `modes` are the places, all that make sense by default. Weights,
    boosts, thresholds and caps that are configured are left out: they are about the user's own databases.

    `language` is what full text is stemmed by (`none` for nothing, None for what is configured). `filter` narrows
    every search to the documents it selects; questions that none of these answers are not asked. `EvalError` where
    no question is left.
    """
    if limit < 1 or (max_questions is not None and max_questions < 1):
        raise ValueError("limit and max_questions must be at least 1")
    asked = _Asked(limit=limit, filter=filter, language=language, max_questions=max_questions, seed=seed)
    config = for_measuring(config)
    settled = list(dict.fromkeys(variant.settled(config) for variant in variants))
    where = list(dict.fromkeys(modes or _sensible(suite, scope)))
    _check_modes(where, scope)
    space = workspace or Workspace()
    layout = (
        Layout(given=scope)
        if scope is not None
        else await _made(Populator(config=config, workspace=space, language=language, on_step=on_step), suite, where)
    )
    cases = await _cases(suite, layout, config, where, asked)
    recorders: list[Recorder] = []
    by_reranker = sorted(settled, key=lambda variant: str(variant.reranker))
    for reranker, group in groupby(by_reranker, key=lambda variant: variant.reranker):
        reranking = with_reranking(config, reranking_model(config, reranker))
        async with open_places(layout, reranking, where, suite) as places:
            recorders += await ask_all(cases, list(group), places, limit=limit, filter=filter, on_step=on_step)
    recorders.sort(key=lambda recorder: (settled.index(recorder.variant), where.index(recorder.place.mode)))
    _check_known(recorders, scope)
    return await _run(suite, config, cases, recorders, _settings_of(layout, config, asked))


def _sensible(suite: Suite, scope: DatabaseScope | None) -> tuple[Mode, ...]:
    if scope is not None:
        return (Mode.GIVEN,)
    return (Mode.ALONE,) if len(suite.datasets) == 1 else (Mode.ALONE, Mode.FEDERATED, Mode.POOLED)


def _check_modes(modes: Sequence[Mode], scope: DatabaseScope | None) -> None:
    if any((mode is Mode.GIVEN) != (scope is not None) for mode in modes):
        raise ValueError(f"the mode '{Mode.GIVEN}', and no other, is for databases that were there before")


async def _made(populator: Populator, suite: Suite, modes: Sequence[Mode]) -> Layout:
    single = {Mode.ALONE, Mode.FEDERATED} & set(modes)
    layout = Layout(
        single=await populator.databases(suite) if single else (),
        pooled=await populator.pooled(suite) if Mode.POOLED in modes else None,
    )
    populator.workspace.tidy()
    return layout


async def _cases(suite: Suite, layout: Layout, config: AppConfig, modes: Sequence[Mode], asked: _Asked) -> list[Case]:
    cases = suite.cases()
    if asked.filter is not None:
        async with open_places(layout, config, modes, suite) as places:
            cases = restricted(cases, await places[-1].selected(asked.filter))
    if not cases:
        raise EvalError("the filter selects no document that answers a question, so there is nothing to measure.")
    return drawn(cases, asked.max_questions, seed=asked.seed)


def _check_known(recorders: Sequence[Recorder], scope: DatabaseScope | None) -> None:
    """A database of other documents would otherwise score 0."""
    if scope is not None and not any(recorder.knows_a_passage for recorder in recorders):
        names = ", ".join(f"'{name}'" for name in scope.names)
        raise EvalError(
            f"nothing that was found in {names} is a passage of the datasets. Documents are recognised by their URI or "
            "id, which has to be that of the passage, or DATASET/ID as 'eval populate' stores them."
        )


def _settings_of(layout: Layout, config: AppConfig, asked: _Asked) -> Settings:
    given = layout.given.databases if layout.given is not None else ()
    refs = [*layout.single, *([layout.pooled] if layout.pooled else []), *given]
    return Settings(
        limit=asked.limit,
        filter=None if asked.filter is None else str(asked.filter),
        language=asked.language,
        max_questions=asked.max_questions,
        seed=asked.seed,
        databases=[ref.name for ref in refs],
        storage=engine_of(config).name if not given else ", ".join(sorted({ref.storage for ref in given})),
        embedding="",
    )


async def _run(
    suite: Suite, config: AppConfig, cases: Sequence[Case], recorders: Sequence[Recorder], settings: Settings
) -> Run:
    embedder: Embedder = config.kernel.create("embedder", embedder_name(config), config)
    try:
        settings = settings.model_copy(update={"embedding": embedder.identity.describe()})
    finally:
        await embedder.close()
    measures = measures_for(settings.limit)
    return Run(
        settings=settings,
        datasets=[
            DatasetFacts(
                name=dataset.name,
                digest=dataset.digest,
                passages=len(dataset.passages),
                judgments=sum(map(len, dataset.judgments.values())),
            )
            for dataset in suite.datasets
        ],
        questions=[Question(dataset=case.dataset, id=case.id, text=case.text) for case in cases],
        outcomes=[recorder.outcome(measures) for recorder in recorders],
        versions=versions(config.kernel),
        machine=machine(),
    )
