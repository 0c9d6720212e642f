"""What has become of a database: the versions of its tables."""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from haiku.rag.contracts.maintenance import HistoryEntry
from haiku.rag.storage.lancedb.layout import PARTS
from haiku.rag.storage.lancedb.table_tags import tag_versions
from haiku.rag.storage.lancedb.tables import Tables

Entry = Mapping[str, Any]

UNKNOWN = "commit"
"""What is said of a version where the engine's figures tell nothing: an index, a tag, a change that kept every size."""


async def history_of(tables: Tables, limit: int | None) -> list[HistoryEntry]:
    """The versions of every part that are still there, newest first, up to `limit` of them altogether."""
    entries: list[HistoryEntry] = []
    for part, table in zip(PARTS, tables.parts, strict=True):
        entries += await _versions(part, table)
    entries.sort(key=lambda entry: entry.at, reverse=True)
    return entries if limit is None else entries[: max(limit, 0)]


async def _versions(part: str, table: Any) -> list[HistoryEntry]:
    tags: dict[int, list[str]] = {}
    for name, version in sorted((await tag_versions(table)).items()):
        tags.setdefault(version, []).append(name)
    found = {entry["version"]: entry for entry in await table.list_versions()}
    entries = [
        HistoryEntry(
            part=part,
            version=version,
            at=entry["timestamp"].astimezone(UTC),
            operation=_operation(entry, found.get(version - 1)),
            tags=tags.get(version, []),
        )
        for version, entry in found.items()
    ]
    return sorted(entries, key=lambda entry: -entry.version)


def _operation(entry: Entry, before: Entry | None) -> str:
    """What made a version, from its figures and those of the one before; the engine does not tell."""
    if before is None:
        return "created" if entry["version"] == 1 else UNKNOWN
    more = int(entry["metadata"]["total_rows"]) - int(before["metadata"]["total_rows"])
    if more:
        return f"{abs(more)} {'row' if abs(more) == 1 else 'rows'} {'added' if more > 0 else 'removed'}"
    return UNKNOWN if entry["metadata"] == before["metadata"] else "rows rewritten"
