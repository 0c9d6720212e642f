"""How well several databases are searched as one, on judged collections; exit status 1 where a bar is missed.

    python benchmarks/ranking.py FOLDER [--strategy calibrated] [--reranker local] [--workspace .eval] [--html FILE]

Run by `nox -s eval -- FOLDER`. FOLDER holds collections in the BEIR layout, see docs/evals.md. Each becomes a database,
all together one more, and every question goes to all databases at once and to the one of everything. Vectors and
databases are kept in the workspace: the first run takes minutes, mostly for embedding.

The bars are for the nine collections that they were set on; for others the figures are printed all the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

from held_out import held_out
from ranking_bench import MEASURE, Bar, Bench, line_of, quality_ratio, short, time_ratio

from haiku.rag.config import load_config
from haiku.rag.evals.datasets import Suite
from haiku.rag.evals.html_page import html_report
from haiku.rag.evals.loading import load_suite
from haiku.rag.evals.run_file import Run
from haiku.rag.evals.significance import paired_difference
from haiku.rag.evals.variants import Mode, Variant
from haiku.rag.evals.workspace import Workspace

BESIDE = ("cosine", "rrf", "weighted")
LATIN = 0.5
"""A collection is in a script that the embedded model reads if more than this part of its questions' letters is."""


async def full_text(bench: Bench, language: str, least: float) -> list[Bar]:
    """Full text alone."""
    way = Variant(search_type="fts", fusion="cosine")
    run = await bench.run(f"full text, {language}", [way], language=language)
    bars = [
        Bar(what=f"full text, {language}: federated / pooled", value=quality_ratio(run, way), least=0.97),
        Bar(what=f"full text, {language}: pooled", value=short(run, way, Mode.POOLED).overall[MEASURE], least=least),
        Bar(what=f"full text, {language}: time, federated / pooled", value=time_ratio(run, way), most=3),
    ]
    if language == "none":
        found = short(run, way, Mode.FEDERATED).by_dataset
        bars += [
            Bar(what=f"full text, {name}: federated", value=found[name][MEASURE], least=0.93)
            for name in other_scripts(bench.suite)
        ]
    return bars


async def vector(bench: Bench) -> list[Bar]:
    """Vectors alone."""
    way = Variant(search_type="vector", fusion="cosine")
    run = await bench.run("vector", [way])
    return [
        Bar(what="vector, cosine: federated / pooled", value=quality_ratio(run, way), least=0.99),
        Bar(what="vector, cosine: time, federated / pooled", value=time_ratio(run, way), most=3),
    ]


async def hybrid(bench: Bench) -> list[Bar]:
    """Both, with the recommended strategy and those beside it."""
    best = Variant(fusion=bench.strategy)
    others = [Variant(fusion=name) for name in BESIDE if name != bench.strategy]
    run = await bench.run("hybrid", [best, *others])
    found = short(run, best, Mode.FEDERATED)
    name = f"hybrid, {bench.strategy}"
    return [
        Bar(what=f"{name}: federated, all questions", value=found.overall[MEASURE], least=0.66),
        Bar(what=f"{name}: federated, mean of collections", value=found.mean_of_datasets[MEASURE], least=0.58),
        Bar(what=f"{name}: federated / pooled", value=quality_ratio(run, best), least=0.98),
        Bar(what=f"{name}: time, federated / pooled", value=time_ratio(run, best), most=3),
        Bar(what=f"{name}: order of declaration, questions changed", value=await permuted(bench, run, best), most=0),
    ]


async def permuted(bench: Bench, run: Run, way: Variant) -> float:
    """How many questions get another list, exact ties aside, when the databases are declared in the reverse order."""
    suite = Suite(datasets=bench.suite.datasets[::-1], shared=bench.suite.shared)
    other = await bench.run("hybrid, reverse order", [way], modes=[Mode.FEDERATED], suite=suite)
    before, after = (dict(zip(keys_of(one), lists_of(one, way), strict=True)) for one in (run, other))
    asked = before.keys() & after.keys()
    changed = [key for key in asked if differ(before[key], after[key])]
    print(f"{len(changed)} of {len(asked)} questions get another list in the reverse order.")
    return float(len(changed))


def keys_of(run: Run) -> list[tuple[str, str]]:
    """The questions."""
    return [question.key for question in run.questions]


def lists_of(run: Run, way: Variant) -> Iterator[list[tuple[str, float]]]:
    """Each question's hits with their scores."""
    outcome = line_of(run, way, Mode.FEDERATED).outcome
    for hits, scores in zip(outcome.hits, outcome.scores, strict=True):
        yield list(zip(hits, scores, strict=True))


def differ(before: Sequence[tuple[str, float]], after: Sequence[tuple[str, float]]) -> bool:
    """Whether two lists are not the same, but for the order of exact ties and which of those at the end is left out."""
    if [score for _, score in before] != [score for _, score in after]:
        return True
    last = before[-1][1] if before else None
    first, second = ({hit for hit in one if hit[1] != last} for one in (before, after))
    return first != second


async def reranked(bench: Bench) -> list[Bar]:
    """With the reranker, on the collections that the embedded model reads."""
    if bench.reranker is None:
        return []
    foreign = set(other_scripts(bench.suite))
    suite = Suite(
        datasets=tuple(one for one in bench.suite.datasets if one.name not in foreign), shared=bench.suite.shared
    )
    plain = Variant(fusion="cosine", reranker="none")
    over_cosine = Variant(fusion="cosine", reranker=bench.reranker)
    over_best = Variant(fusion=bench.strategy, reranker=bench.reranker)
    ways = [plain, over_cosine, Variant(fusion=bench.strategy, reranker="none"), over_best]
    run = await bench.run("reranked", ways, modes=[Mode.FEDERATED], suite=suite)
    lines = [line_of(run, way, Mode.FEDERATED).outcome.values[MEASURE] for way in (plain, over_cosine, over_best)]
    found = paired_difference(lines[0], lines[1])
    print(f"Over cosine: {found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f}), p {found.p:.3g}")
    return [
        Bar(what=f"{bench.reranker} over cosine, English: gain", value=found.mean, least=0.0),
        Bar(what=f"{bench.reranker} over {bench.strategy}, English: gain on cosine alone",
            value=fmean(lines[2]) - fmean(lines[0]), least=0.0),
    ]  # fmt: skip


def other_scripts(suite: Suite) -> list[str]:
    """The collections whose questions are mostly not in Latin letters, such as the Japanese one."""
    names = []
    for dataset in suite.datasets:
        letters = [letter for text in dataset.questions.values() for letter in text if letter.isalpha()]
        if sum(letter < "\u0250" for letter in letters) < LATIN * len(letters):
            names.append(dataset.name)
    return names


async def measure(bench: Bench, only: str) -> list[Bar]:
    """The parts whose names begin so, one after the other."""
    parts: dict[str, Callable[[], Awaitable[list[Bar]]]] = {
        "text": lambda: full_text(bench, "none", 0.62),
        "text-english": lambda: full_text(bench, "english", 0.64),
        "vector": lambda: vector(bench),
        "hybrid": lambda: hybrid(bench),
        "held-out": lambda: held_out(bench),
        "reranked": lambda: reranked(bench),
    }
    return [bar for name, part in parts.items() if name.startswith(only) for bar in await part()]


def report(bars: Sequence[Bar]) -> None:
    """Print the bars as a table."""
    print("\n## Bars\n")
    print(f"| {MEASURE}, or a ratio | value | bar | |\n|---|---|---|---|")
    print("\n".join(bar.line for bar in bars))


def runs_of(folder: Path) -> Mapping[str, Run]:
    """The runs that this benchmark keeps in its workspace."""
    from haiku.rag.evals.run_file import load_run

    return {path.stem: load_run(path) for path in sorted((folder / "runs").glob("*.json"))}


def main() -> None:
    """Measure, print, and say by the exit status whether every bar held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--strategy", default="calibrated", help="the fusion that the bars for hybrid search are for")
    parser.add_argument("--reranker", default="local", help="a provider, or 'none' to leave that part out")
    parser.add_argument("--workspace", type=Path, default=Path(".eval"))
    parser.add_argument("--only", default="", help="parts by the beginning of their names: text, vector, hybrid, …")
    parser.add_argument("--max-queries", type=int, help="ask so many of the questions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the bars as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots of all parts")
    options = parser.parse_args()
    bench = Bench(
        suite=load_suite([options.folder]),
        config=load_config(),
        workspace=Workspace(options.workspace),
        strategy=options.strategy,
        reranker=None if options.reranker == "none" else options.reranker,
        max_questions=options.max_queries,
    )
    bars = asyncio.run(measure(bench, options.only))
    report(bars)
    if options.json is not None:
        options.json.write_text(json.dumps([{**asdict(bar), "held": bar.held} for bar in bars], indent=1))
    if options.html is not None:
        options.html.write_text(html_report(runs_of(bench.workspace.folder)), encoding="utf-8")
    sys.exit(0 if all(bar.held for bar in bars) else 1)


if __name__ == "__main__":
    main()
