"""Capabilities `upkeep` and `checks` of the storage in memory."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from haiku.rag.contracts.maintenance import Finding
from haiku.rag.models.upkeep import UpkeepReport, UpkeepStep
from haiku.rag.testing.memory_handle import MemoryHandle
from haiku.rag.testing.memory_server import StoredDocument, now

SAMPLES = 5


class MemoryUpkeep(MemoryHandle):
    """The part of `MemoryDatabase` that tidies up: old commits are forgotten, and there is no index to build."""

    async def vacuum(self, *, retention_seconds: float | None, dry_run: bool) -> UpkeepReport:
        """Forget commits that are older than the retention."""
        await self._visit_to_write("vacuum")
        seconds = self._retention_seconds if retention_seconds is None else retention_seconds
        moment, past = now(), self._past
        outdated = past.outdated(moment - timedelta(seconds=seconds))
        if not dry_run:
            past.commits = [entry for entry in past.commits if entry not in outdated]
        step = UpkeepStep(name="old commits", status="nothing to do")
        if outdated:
            step = UpkeepStep(
                name="old commits", status="planned" if dry_run else "done", detail=f"{len(outdated)} commits"
            )
        return UpkeepReport(finished_at=moment, dry_run=dry_run, steps=[step])

    async def create_index(self) -> dict[str, str]:
        """Every search is exact."""
        await self._visit_to_write("create_index")
        return {}

    async def check(self, *, fix: bool, probe: bool = False) -> list[Finding]:
        """Whether every chunk has a vector that can be searched. What is wrong cannot be put right here.

        There is no store to probe.
        """
        state = await (self._visit_to_write("check") if fix else self._visit("check"))
        dimension = None if state.identity is None else state.identity.dimension
        broken = [stored.row.id for stored in state.in_order() if not _is_sound(stored, dimension)]
        if not broken:
            return [Finding(check="vectors", status="ok", message="every chunk has its vector")]
        return [
            Finding(
                check="vectors",
                status="failed",
                message=f"documents with vectors that are missing, not finite or of another dimension: {len(broken)}",
                remedy="Write these documents again.",
                samples=broken[:SAMPLES],
            )
        ]


def _is_sound(stored: StoredDocument, dimension: int | None) -> bool:
    vectors = stored.parts.vectors
    if vectors is None or dimension is None:
        return vectors is None or bool(np.isfinite(vectors).all())
    return vectors.shape == (len(stored.parts.chunks), dimension) and bool(np.isfinite(vectors).all())
