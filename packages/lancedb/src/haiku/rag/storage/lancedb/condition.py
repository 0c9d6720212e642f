"""What a database says of its own condition: its settings, its tables' columns, its tags, its upkeep."""

import json
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from haiku.rag.contracts.maintenance import Finding, TagInfo
from haiku.rag.models.upkeep import UpkeepReport, UpkeepStep
from haiku.rag.storage.lancedb.layout import Layout
from haiku.rag.storage.lancedb.schema import ITEMS_SCHEMA, METRIC, PICTURES_SCHEMA, chunks_schema, documents_schema
from haiku.rag.storage.lancedb.staging import BY_REBUILD
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.verdicts import FIX, RESTORE, verdict

VACUUM = "haiku-rag vacuum"
COMPACTION = "compaction"
STEPS = {
    "old revisions": ("orphans", "These belong to no document any more: {}.", "No rows are left over."),
    "old generations": ("old_generations", "These are left over from a rebuild: {}.", "No tables are left over."),
    "text indexes": ("text_indexes", "These full-text indexes are missing or outdated: {}.", "Text is indexed."),
    "lookup indexes": ("lookup_indexes", "These indexes are missing: {}.", "Ids and revisions are indexed."),
    "vector index": ("vector_index", "There is no fitting vector index over {}.", "No vector index is missing."),
    "index catch-up": ("index_coverage", "Indexes lack {}, so searches scan those.", "The indexes cover the rows."),
    COMPACTION: ("fragments", "There is much to compact: {}.", "The tables are compact."),
}
"""For each step of upkeep the check that it makes when it is only planned, and what that says."""


def settings_verdict(layouts: Sequence[Layout]) -> Finding:
    """Whether exactly one generation of tables is the current one."""
    current = [layout for layout in layouts if layout.state in ("current", "sealed")]
    trouble = "" if len(current) == 1 else f"One generation of tables has to be the current one, not {len(current)}."
    metrics = {layout.metric for layout in current} - {METRIC}
    if metrics:
        trouble = f"The metric is recorded as {', '.join(sorted(metrics))}, and vectors are compared by {METRIC}."
    return verdict("settings", trouble, fine="The settings are in order.", status="failed", remedy=RESTORE)


async def schema_verdicts(tables: Tables) -> list[Finding]:
    """Whether the tables have the columns that they should, and vectors of the recorded dimension."""
    wanted = (documents_schema(""), chunks_schema(tables.dimension), ITEMS_SCHEMA, PICTURES_SCHEMA)
    wrong = []
    for table, schema in zip(tables.parts, wanted, strict=True):
        found = await table.schema()
        wrong += [f"{field.name} of {table.name}" for field in schema if not _has(found, field)]
    width = (await tables.chunks.schema()).field("vector").type.list_size
    return [
        verdict(
            "schema",
            f"These columns are missing or of another type: {', '.join(wrong)}." if wrong else "",
            fine="Every table has its columns.",
            status="failed",
            remedy=RESTORE,
        ),
        verdict(
            "vector_dimension",
            f"Vectors have {width} dimensions and {tables.dimension} are recorded."
            if width != tables.dimension
            else "",
            fine=f"Vectors have the recorded {tables.dimension} dimensions.",
            status="failed",
            remedy="haiku-rag rebuild --embed-only",
        ),
    ]


def _has(schema: pa.Schema, field: pa.Field) -> bool:
    return field.name in schema.names and schema.field(field.name).type == field.type


def plan_verdicts(plan: UpkeepReport) -> Iterator[Finding]:
    """What upkeep would have to do by now."""
    for begins, (check, wrong, fine) in STEPS.items():
        steps = [step for step in plan.steps if step.name.startswith(begins)]
        failed = [step for step in steps if step.status == "failed"]
        if failed:
            yield Finding(check=check, status="warning", message=f"Not known: {_told(failed)}.", remedy=VACUUM)
            continue
        found = ", ".join(step.detail for step in steps if step.status == "planned")
        yield verdict(check, wrong.format(found) if found else "", fine=fine, remedy=VACUUM, fixable=True)


def upkeep_verdict(upkeep: UpkeepReport | None) -> Finding:
    """How the last upkeep ended."""
    if upkeep is None:
        return Finding(check="upkeep", status="ok", message="No upkeep has been recorded yet.")
    when = f"{upkeep.finished_at:%Y-%m-%d %H:%M}"
    trouble = f"Steps of the last upkeep failed ({when}): {_told(upkeep.failed)}." if upkeep.failed else ""
    fine = f"The last upkeep ended well ({when})."
    return verdict("upkeep", trouble, fine=fine, remedy=VACUUM, fixable=True)


def rebuild_verdict(layouts: Iterable[Layout]) -> Finding:
    """Whether a rebuild was begun and is not finished."""
    jobs = [layout.job for layout in layouts if layout.job is not None]
    mode = next((mode for job in jobs if (mode := _mode(job))), None)
    trouble = f"A rebuild{f' ({mode})' if mode else ''} was begun and has not been finished." if jobs else ""
    command = f"haiku-rag rebuild --{mode}" if mode else "haiku-rag rebuild"
    return verdict("rebuild", trouble, fine="No rebuild is under way.", remedy=command)


def _mode(job: str) -> str | None:
    """The mode that core has written down; None for what is not its job."""
    if job == BY_REBUILD:
        return None
    try:
        mode = json.loads(job)["mode"]
    except (ValueError, TypeError, KeyError):
        return None
    return str(mode)


def tags_verdict(tags: Sequence[TagInfo]) -> Finding:
    """Whether every tag can be read."""
    broken = [tag.name for tag in tags if not tag.complete]
    trouble = "These tags are not complete and cannot be read." if broken else ""
    remedy = "haiku-rag tag delete NAME"
    return verdict("tags", trouble, fine=f"Every tag is complete, of {len(tags)}.", remedy=remedy, samples=broken)


def _told(steps: Iterable[UpkeepStep]) -> str:
    return ", ".join(f"{step.name} ({step.detail})" for step in steps)


def doubled_verdicts(doubled: Sequence[str], shared: Sequence[str]) -> Iterator[Finding]:
    """Passages that are there twice."""
    yield verdict(
        "duplicate_chunks",
        f"Documents with passages that are stored twice: {len(doubled)}." if doubled else "",
        fine="No passage is stored twice.",
        status="failed",
        remedy=FIX,
        samples=doubled,
        fixable=True,
    )
    yield verdict(
        "shared_chunk_ids",
        f"Ids of passages that several documents use: {len(shared)}." if shared else "",
        fine="No two documents share the id of a passage.",
        remedy="haiku-rag rebuild --rechunk",
        samples=shared,
    )
