"""`haiku-rag doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from haiku.rag.cli.boundary import Failure
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.masking import masked_url
from haiku.rag.cli.options import database_option, json_option
from haiku.rag.cli.output import one_line, print_json, print_text
from haiku.rag.cli.runner import run

if TYPE_CHECKING:
    from haiku.rag.client import DoctorReport
    from haiku.rag.contracts import DatabaseRef, Finding


@click.command()
@click.option("--fix", is_flag=True, help="Put right what is safe to put right.")
@click.option("--probe", is_flag=True, help="Find out, by writing scratch, whether an object store keeps its promises.")
@database_option
@json_option
@pass_invocation
def command(invocation: Invocation, database_path: str | None, *, fix: bool, probe: bool, as_json: bool) -> None:
    """Examine a database, its plugins and the configuration.

    Every row is read. Nothing is changed without --fix or --probe. The exit status is 1 if a check failed; warnings
    leave it at 0.
    """
    from haiku.rag.client import examine

    scope = invocation.live("doctor", database_path, writes=fix or probe)
    report = run(lambda: examine(scope, invocation.config, fix=fix, probe=probe))
    _show(scope.databases[0], report, as_json=as_json)
    if report.failed:
        raise Failure(f"{len(report.failed)} of {len(report.findings)} checks of '{report.source}' failed.")


def _show(ref: DatabaseRef, report: DoctorReport, *, as_json: bool) -> None:
    if as_json:
        fields = [_fields(report.source, finding) for finding in report.findings]
        print_json({"results": fields, "report": _summary(ref, report)})
        return
    for line in doctor_lines(ref, report):
        print_text(line)


def _fields(source: str, finding: Finding) -> dict[str, Any]:
    texts = {"message": masked_url(finding.message), "remedy": masked_url(finding.remedy)}
    return {"source": source, **finding.model_dump(), **texts}


def _summary(ref: DatabaseRef, report: DoctorReport) -> dict[str, Any]:
    return {
        "source": report.source,
        "location": masked_url(ref.location),
        "failed": len(report.failed),
        "warnings": len(report.warnings),
        "fixed": sum(finding.fixed for finding in report.findings),
    }


def doctor_lines(ref: DatabaseRef, report: DoctorReport) -> Iterator[str]:
    """Where the database is, a line for each check, and what to do about those that are not well."""
    yield f"database: {report.source}"
    yield f"location: {masked_url(ref.location)}"
    for finding in report.findings:
        word = "fixed" if finding.fixed else finding.status
        yield f"{word:8}{finding.check}: {one_line(masked_url(finding.message))}"
        if finding.status != "ok":
            if finding.samples:
                yield f"        for example: {one_line(', '.join(finding.samples))}"
            if finding.remedy and finding.remedy not in finding.message:
                yield f"        remedy: {one_line(masked_url(finding.remedy))}"
    counts = _summary(ref, report)
    yield f"{counts['failed']} failed, {counts['warnings']} warnings, {counts['fixed']} fixed"
