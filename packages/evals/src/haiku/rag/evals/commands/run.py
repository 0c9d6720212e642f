"""`haiku-rag eval run`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import click

from haiku.rag.client import DatabaseScope
from haiku.rag.config import AppConfig
from haiku.rag.evals.commands.output import print_json, print_tables, warning
from haiku.rag.evals.commands.surroundings import configuration, database_name, scope_of
from haiku.rag.evals.commands.working import run_shown
from haiku.rag.evals.lines import lines_of
from haiku.rag.evals.loading import load_suite
from haiku.rag.evals.progress import OnStep
from haiku.rag.evals.run_file import Run, save_run
from haiku.rag.evals.running import DEFAULT_LIMIT, evaluate
from haiku.rag.evals.summary import summary_of
from haiku.rag.evals.tables import tables_of
from haiku.rag.evals.variants import Mode, every_variant
from haiku.rag.evals.workspace import Workspace
from haiku.rag.models import SearchType

MODES = [Mode.ALONE.value, Mode.FEDERATED.value, Mode.POOLED.value]


@click.command("run")
@click.argument("datasets", nargs=-1, metavar="[DATASET]...")
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    help="A fusion strategy, such as cosine or rrf. Repeatable: each is measured.",
)
@click.option(
    "--reranker",
    "rerankers",
    multiple=True,
    metavar="PROVIDER[:MODEL]",
    help="A reranker, or 'none'. Repeatable: each is measured.",
)
@click.option(
    "--search-type",
    "-s",
    "search_types",
    multiple=True,
    type=click.Choice(["hybrid", "vector", "fts"]),
    help="What kind of search; hybrid by default. Repeatable.",
)
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(MODES),
    help="Where questions are asked; everywhere by default. Repeatable.",
)
@click.option(
    "--limit",
    "-l",
    type=click.IntRange(min=1),
    default=DEFAULT_LIMIT,
    show_default=True,
    metavar="N",
    help="So many results a question.",
)
@click.option(
    "--max-queries",
    "max_questions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Ask N of the questions, drawn at random.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Which ones are drawn.")
@click.option(
    "--filter",
    "-f",
    metavar="FILTER",
    help="Search only the documents that the filter selects, and ask only what these answer.",
)
@click.option(
    "--language",
    metavar="NAME",
    help="The language of full text, such as english, or 'none'; as configured by default.",
)
@click.option(
    "--db",
    "database_path",
    metavar="PATH",
    help="Search this database as it is, whatever is configured, and make none.",
)
@click.option("--configured", is_flag=True, help="Search the configured databases as they are, and make none.")
@click.option(
    "--workspace", metavar="DIR", help="Where vectors and databases are kept; a folder in the cache by default."
)
@click.option("--keep/--no-keep", default=True, help="Keep them for the next run; kept by default.")
@click.option("--out", metavar="FILE", help="Write the run, for 'eval compare' and 'eval report'.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def run_command(
    datasets: Sequence[str],
    *,
    database_path: str | None,
    configured: bool,
    workspace: str | None,
    keep: bool,
    out: str | None,
    as_json: bool,
    strategies: Sequence[str],
    rerankers: Sequence[str],
    search_types: Sequence[str],
    modes: Sequence[str],
    **asked: Any,
) -> None:
    """Ask the questions of each DATASET, and say how well what is found answers them.

    DATASET is a folder in the BEIR layout, a folder of such folders, a name that ir_datasets knows where that library
    is installed, or 'sample', which comes with this package and is taken when none is given.

    Each dataset becomes a database of its own in the workspace, and all together one more. Every question is asked in
    the database of its dataset (alone), in all databases at once (federated), and in the one of everything (pooled).
    """
    config = configuration()
    scope = _scope(config, database_path, configured=configured)
    if scope is not None and (modes or asked["language"]):
        raise click.UsageError("--mode and --language are for databases that are made. Leave them out.")
    if workspace is not None and not keep:
        raise click.UsageError("--no-keep takes a workspace of its own. Leave --workspace out.")
    suite = load_suite(datasets, with_passages=scope is None)
    kinds = cast("Sequence[SearchType]", search_types or ["hybrid"])
    variants = every_variant(kinds, strategies, rerankers)

    with _workspace(workspace, keep=keep) as space:

        async def work(on_step: OnStep) -> Run:
            return await evaluate(
                suite,
                config,
                variants=variants,
                modes=[Mode(mode) for mode in modes] or None,
                workspace=space,
                scope=scope,
                on_step=on_step,
                **asked,
            )

        _finish(run_shown(work), out, as_json=as_json)


def _finish(run: Run, out: str | None, *, as_json: bool) -> None:
    if out is not None:
        save_run(run, out)
    _show(run, as_json=as_json)


def _scope(config: AppConfig, database_path: str | None, *, configured: bool) -> DatabaseScope | None:
    if configured and (database_path is not None or database_name() is not None):
        raise click.UsageError("--configured and --db or --db-name both choose the databases. Give one of them.")
    given = configured or database_path is not None or database_name() is not None
    return scope_of(config, database_path) if given else None


@contextmanager
def _workspace(folder: str | None, *, keep: bool) -> Iterator[Workspace]:
    if keep:
        yield Workspace(folder)
        return
    with tempfile.TemporaryDirectory(prefix="haiku-rag-eval-") as temporary:
        yield Workspace(temporary)


def _show(run: Run, *, as_json: bool) -> None:
    lines = lines_of({"": run})
    for line in lines:
        if line.outcome.rerank_failures:
            failed = f"{line.outcome.rerank_failures} of {len(run.questions)}"
            warning(f"'{line.name}': the reranker failed for {failed} questions, and the fused order stood.")
    if as_json:
        facts = run.model_dump(exclude={"outcomes", "questions"})
        print_json({"results": [summary_of(line) for line in lines], "report": facts})
        return
    click.echo(f"{len(run.questions)} questions of {len(run.datasets)} datasets; {run.settings.embedding}.\n")
    print_tables(tables_of(lines))
