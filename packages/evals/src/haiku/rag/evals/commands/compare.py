"""`haiku-rag eval compare`."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from haiku.rag.evals.commands.output import print_json, print_tables, warning
from haiku.rag.evals.commands.reading import read_lines
from haiku.rag.evals.comparing import Comparison, compare, paired_lines
from haiku.rag.evals.tables import comparison_tables


@click.command("compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    metavar="N",
    help="So many questions that gain and lose most.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def compare_command(first: str, second: str, *, examples: int, as_json: bool) -> None:
    """Compare two runs, B against A, question by question.

    A and B are files that 'eval run --out' wrote. A word after a '#' chooses one of the ways that a run measured:
    'run.json#rrf'. So two ways of one run can be compared. Without it, the same ways are compared, at each place.
    """
    pairs = paired_lines(read_lines(first), read_lines(second))
    comparisons = [compare(a, b, examples=examples) for a, b in pairs]
    for text in dict.fromkeys(text for comparison in comparisons for text in comparison.warnings):
        warning(text)
    if as_json:
        print_json({"results": list(map(_plain, comparisons))})
        return
    for comparison in comparisons:
        print_tables(comparison_tables(comparison))


def _plain(comparison: Comparison) -> dict[str, Any]:
    differences = {
        measure: {**dataclasses.asdict(found), "difference": found.mean}
        for measure, found in comparison.differences.items()
    }
    return {**dataclasses.asdict(comparison), "differences": differences}
