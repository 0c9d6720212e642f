"""What the rows of a database say about its health."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from haiku.rag.contracts.maintenance import Finding
from haiku.rag.storage.lancedb.schema import CHUNKS, ITEMS, PICTURES
from haiku.rag.storage.lancedb.survey import SAMPLES, Numbers, Survey, Tally

Trouble = Literal["warning", "failed"]
REBUILD = "haiku-rag rebuild --full"
EMBED = "haiku-rag rebuild --embed-only"
FIX = "haiku-rag doctor --fix"
ADD_AGAIN = "haiku-rag delete ID, then haiku-rag add-src"
SHARED = (
    ("duplicate_ids", "id", "key", "id"),
    ("duplicate_keys", "key", "id", "key"),
    ("duplicate_uris", "uri", "id", "URI"),
)
"""For each check the column that documents must not share, what tells them apart, and what it is called."""
RESTORE = "haiku-rag tag list, and haiku-rag tag restore NAME, or a backup of the database"


def verdict(
    check: str,
    trouble: str,
    *,
    fine: str,
    status: Trouble = "warning",
    remedy: str = "",
    samples: Sequence[str] = (),
    fixable: bool = False,
) -> Finding:
    """What is wrong, or what is fine where nothing is."""
    if not trouble:
        return Finding(check=check, status="ok", message=fine)
    return Finding(
        check=check,
        status=status,
        message=trouble,
        remedy=remedy,
        samples=list(samples[:SAMPLES]),
        fixable=fixable,
    )


def row_verdicts(survey: Survey) -> Iterator[Finding]:
    """Everything that reading the rows shows; nothing about parts that could not be read."""
    yield _readable(survey)
    yield from _documents(survey)
    yield _counted("documents_without_chunks", survey.without_chunks, _WITHOUT_CHUNKS, remedy=REBUILD)
    if CHUNKS in survey.unreadable:
        return
    yield _chunk_counts(survey)
    yield _counted("chunk_details", survey.garbled, _GARBLED, status="failed", remedy=REBUILD)
    yield _counted("vectors_finite", survey.blurred, _BLURRED, status="failed", remedy=EMBED)
    yield _counted("vectors_zero", survey.pointless, _POINTLESS, remedy=EMBED)
    if ITEMS not in survey.unreadable:
        yield _missing("item_references", survey, survey.referred.missing_from(survey.items), "items")
    if PICTURES not in survey.unreadable:
        yield _missing("picture_references", survey, survey.pictured.missing_from(survey.pictures), "pictures")


_WITHOUT_CHUNKS = ("Documents with text and without passages, which no search finds: {}.", "Every text has passages.")
_GARBLED = ("Passages whose details cannot be read: {}.", "The details of every passage can be read.")
_BLURRED = ("Passages with a vector that is not finite: {}.", "Every vector is finite.")
_POINTLESS = ("Passages with a vector of zeros, which no vector search finds: {}.", "No vector is zero.")


def _readable(survey: Survey) -> Finding:
    parts = ", ".join(f"'{part}' ({reason})" for part, reason in survey.unreadable.items())
    trouble = f"These tables could not be read to their end: {parts}." if parts else ""
    return verdict("tables", trouble, fine="Every row of every table can be read.", status="failed", remedy=RESTORE)


def _counted(
    check: str, tally: Tally, texts: tuple[str, str], *, status: Trouble = "warning", remedy: str = ""
) -> Finding:
    trouble = texts[0].format(tally.count) if tally.count else ""
    return verdict(check, trouble, fine=texts[1], status=status, remedy=remedy, samples=tally.samples)


def _documents(survey: Survey) -> Iterator[Finding]:
    table = survey.state.table
    for check, same, other, what in SHARED:
        shared = [row[same] for row in _sharing(table, same, other)]
        yield verdict(
            check,
            f"Values that several documents have as their {what}: {len(shared)}." if shared else "",
            fine=f"No two documents have the same {what}.",
            status="failed",
            remedy=ADD_AGAIN,
            samples=shared,
        )
    doubled = stored_twice(table)
    yield verdict(
        "duplicate_documents",
        f"Documents that are stored more than once: {len(doubled)}." if doubled else "",
        fine="No document is stored twice.",
        status="failed",
        remedy=FIX,
        samples=[row["id"] for row in doubled],
        fixable=True,
    )
    wrong = _wrong_keys(table)
    yield verdict(
        "document_keys",
        f"Documents whose key is not that of their URI or id: {len(wrong)}." if wrong else "",
        fine="Every document's key is that of its URI or id.",
        status="failed",
        remedy=ADD_AGAIN,
        samples=wrong,
    )


def stored_twice(table: pa.Table) -> list[dict[str, Any]]:
    """The keys and ids of documents of which there are several rows, each with the number of rows."""
    rows = table.group_by(["key", "id"]).aggregate([("id", "count")])
    found: list[dict[str, Any]] = rows.filter(pc.greater(rows["id_count"], 1)).to_pylist()
    return found


def _sharing(table: pa.Table, same: str, other: str) -> list[dict[str, Any]]:
    """The values of one column that go with several of another."""
    rows = table.filter(pc.is_valid(table[same])).group_by([same]).aggregate([(other, "count_distinct")])
    found: list[dict[str, Any]] = rows.filter(pc.greater(rows[f"{other}_count_distinct"], 1)).to_pylist()
    return found


def _wrong_keys(table: pa.Table) -> list[str]:
    own = pc.binary_join_element_wise("id:", table["id"], "")
    due = pc.coalesce(pc.binary_join_element_wise("uri:", table["uri"], ""), own)
    # What was stored without a URI keeps its key.
    wrong = pc.and_(pc.not_equal(table["key"], due), pc.not_equal(table["key"], own))
    ids: list[str] = table["id"].filter(wrong).to_pylist()
    return ids


def _chunk_counts(survey: Survey) -> Finding:
    expected = np.array(survey.state.table["chunk_count"], np.int64)
    places = np.flatnonzero(survey.counts != expected)
    trouble = f"Documents with another number of passages than they were written with: {len(places)}."
    return verdict(
        "chunk_counts",
        trouble if len(places) else "",
        fine=f"Every document has all of its passages, {survey.counts.sum()} altogether.",
        status="failed",
        remedy=REBUILD,
        samples=_ids(survey, places),
    )


def _missing(check: str, survey: Survey, places: Numbers, what: str) -> Finding:
    trouble = f"Documents with passages that refer to {what} which are not there: {len(places)}."
    return verdict(
        check,
        trouble if len(places) else "",
        fine=f"All {what} that passages refer to are there.",
        remedy=REBUILD,
        samples=_ids(survey, places),
    )


def _ids(survey: Survey, places: Numbers) -> list[str]:
    return [survey.state.ids[place] for place in places[:SAMPLES].tolist()]
