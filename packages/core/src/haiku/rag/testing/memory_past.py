"""What a database in memory keeps of its past: commits, tags, and the version of its schema."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from haiku.rag.contracts.maintenance import HistoryEntry, Migration

if TYPE_CHECKING:
    from haiku.rag.testing.memory_server import MemoryState

MIGRATIONS = (Migration(version=1, summary="what the storage in memory has today"),)
SCHEMA_VERSION = MIGRATIONS[-1].version


@dataclass(frozen=True, kw_only=True)
class MemoryTag:
    """A state under a name: a copy that nothing changes."""

    version: int
    created_at: datetime
    state: MemoryState


@dataclass(kw_only=True)
class MemoryPast:
    """What one location keeps beside its state."""

    version: int = 0
    commits: list[HistoryEntry] = field(default_factory=list)
    tags: dict[str, MemoryTag] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    def commit(self, operation: str, at: datetime) -> None:
        """Note that the state has changed."""
        self.version += 1
        self.commits.append(HistoryEntry(part="documents", version=self.version, at=at, operation=operation))

    def tag(self, name: str, state: MemoryState, at: datetime) -> MemoryTag:
        """Name the state as it is."""
        self.tags[name] = MemoryTag(version=self.version, created_at=at, state=deepcopy(state))
        return self.tags[name]

    def named(self, version: int) -> list[str]:
        """The tags on a version."""
        return sorted(name for name, tag in self.tags.items() if tag.version == version)

    def outdated(self, before: datetime) -> list[HistoryEntry]:
        """The commits from before a moment that nobody needs: neither the newest nor one with a tag."""
        return [
            entry
            for entry in self.commits
            if entry.at < before and entry.version != self.version and not self.named(entry.version)
        ]

    @property
    def pending(self) -> tuple[Migration, ...]:
        """The steps to the current schema."""
        return tuple(step for step in MIGRATIONS if step.version > self.schema_version)
