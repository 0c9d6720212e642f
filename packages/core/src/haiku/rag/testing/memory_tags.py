"""Capabilities `history` and `tags` of the storage in memory."""

from __future__ import annotations

from copy import deepcopy

from haiku.rag.contracts.maintenance import HistoryEntry, TagInfo
from haiku.rag.errors import TagError
from haiku.rag.testing.memory_handle import MemoryHandle
from haiku.rag.testing.memory_past import MemoryTag
from haiku.rag.testing.memory_server import now


class MemoryTagging(MemoryHandle):
    """The part of `MemoryDatabase` that looks back; nothing is awaited between a look and a change."""

    async def history(self, *, limit: int | None) -> list[HistoryEntry]:
        """The commits that are still known."""
        await self._visit("history")
        entries = [entry.model_copy(update={"tags": self._past.named(entry.version)}) for entry in self._past.commits]
        return entries[::-1][:limit]

    async def tags(self) -> list[TagInfo]:
        """By name."""
        await self._visit("tags")
        return [TagInfo(name=name, created_at=tag.created_at) for name, tag in sorted(self._past.tags.items())]

    async def create_tag(self, name: str) -> TagInfo:
        """Copy the state."""
        state = await self._visit_to_write("create_tag")
        if not name.strip() or not name.isprintable():
            raise TagError(f"'{name}' is not a name for a tag of database '{self._ref.name}'.", source=self._ref.name)
        if name in self._past.tags:
            raise TagError(f"database '{self._ref.name}' has a tag '{name}' already.", source=self._ref.name)
        return TagInfo(name=name, created_at=self._past.tag(name, state, now()).created_at)

    async def delete_tag(self, name: str) -> None:
        """Forget the copy."""
        await self._visit_to_write("delete_tag")
        self._tagged(name)
        del self._past.tags[name]

    async def restore_tag(self, name: str) -> str:
        """Put a copy of the copy in place, and one of the state before beside it."""
        state = await self._visit_to_write("restore_tag")
        restored = deepcopy(self._tagged(name).state)
        moment = now()
        before = f"before-restore-{moment:%Y%m%dT%H%M%S.%f}"
        self._past.tag(before, state, moment)
        restored.job = state.job
        self._server.states[self._ref.location] = restored
        self._embedding = restored.identity
        self._committed("restore")
        return before

    def _tagged(self, name: str) -> MemoryTag:
        return self._server.tag(self._ref, name)
