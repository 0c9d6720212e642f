"""Capability `checks`: reads every row, says what is wrong, and puts right what is safe to put right."""

import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

import anyio

from haiku.rag.config.models import StorageConfig
from haiku.rag.contracts.maintenance import Finding
from haiku.rag.errors import TagError
from haiku.rag.models.upkeep import UpkeepStep
from haiku.rag.storage.lancedb.condition import (
    COMPACTION,
    doubled_verdicts,
    plan_verdicts,
    rebuild_verdict,
    schema_verdicts,
    settings_verdict,
    tags_verdict,
    upkeep_verdict,
)
from haiku.rag.storage.lancedb.failures import STEP_ERRORS, failure_reason
from haiku.rag.storage.lancedb.garbage import Garbage
from haiku.rag.storage.lancedb.generations import layouts_now
from haiku.rag.storage.lancedb.layout import current_layout
from haiku.rag.storage.lancedb.live import LiveTables
from haiku.rag.storage.lancedb.probe import probed
from haiku.rag.storage.lancedb.repairs import Parts, keep_newest, store_once
from haiku.rag.storage.lancedb.schema import CHUNKS, STATE_COLUMNS
from haiku.rag.storage.lancedb.soundness import INDEXES, index_verdict
from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.survey import STALLED_SECONDS, Doubles, Survey
from haiku.rag.storage.lancedb.tables import Tables, open_tables
from haiku.rag.storage.lancedb.tags import Tags
from haiku.rag.storage.lancedb.upkeep import FREELY_BYTES, LAG_ROWS, LAG_SHARE, Upkeep
from haiku.rag.storage.lancedb.vacuum import Round, Vacuum
from haiku.rag.storage.lancedb.verdicts import FIX, RESTORE, row_verdicts, stored_twice, verdict
from haiku.rag.storage.lancedb.writing import Writer

MANY_FRAGMENTS = 100
"""From so many pieces on, reading a table takes noticeably longer."""
CHECK_SECONDS = 300.0
Check = Callable[[], Awaitable[list[Finding]]]


@dataclass(kw_only=True)
class Examined:
    """What an examination found, and what of the rows has to be known to put them right."""

    findings: list[Finding]
    survey: Survey | None = None
    doubles: Doubles | None = None

    def has_to_be_fixed(self) -> bool:
        """Whether there is something that can be."""
        return any(finding.fixable and finding.status != "ok" for finding in self.findings)


class Checks:
    """The checks of one database. Without being asked to fix or to probe they write nothing."""

    def __init__(
        self,
        connection: Any,
        live: LiveTables,
        writer: Writer,
        upkeep: Upkeep,
        parts: Parts,
        *,
        interval: float,
        storage: StorageConfig,
    ) -> None:
        self._connection = connection
        self._live = live
        self._writer = writer
        self._upkeep = upkeep
        self._parts = parts
        self._storage = storage
        self._vacuum = Vacuum(connection, live, Garbage(live, interval=interval), interval=interval)

    async def run(self, *, fix: bool, probe: bool) -> list[Finding]:
        """Examine; with `fix` repair and examine again, so that what is said to be fixed was seen to be."""
        if self._live.ref.tag is not None:
            raise TagError(f"'{self._live.ref.name}' is read at a tag; check it without.", source=self._live.ref.name)
        examined = await self._examined()
        findings = examined.findings
        if fix and examined.has_to_be_fixed():
            trouble = await self._repaired(examined)
            findings = _compared(findings, (await self._examined()).findings) + trouble
        return findings + await probed(self._connection, self._live.ref, probe=probe)

    async def _examined(self) -> Examined:
        examined = Examined(findings=[])
        checks: dict[str, Check] = {
            "rows": partial(self._rows, examined),
            "settings": self._settings,
            "tags": self._tags,
        }
        checks |= {INDEXES: self._indexes, "plan": self._plan, "writable": self._writable}
        for name, check in checks.items():
            try:
                # The rows may take as long as they do: each batch has a deadline of its own.
                with anyio.fail_after(inf if name == "rows" else CHECK_SECONDS):
                    examined.findings += await check()
            except STEP_ERRORS as error:
                message = f"This could not be checked: {failure_reason(error)}."
                examined.findings.append(Finding(check=name, status="failed", message=message, remedy=RESTORE))
        return examined

    async def _rows(self, examined: Examined) -> list[Finding]:
        # Handles of its own, which stand still: one state however long the reading takes.
        with anyio.fail_after(STALLED_SECONDS):
            tables = await open_tables(self._connection, self._live.ref)
        try:
            survey = examined.survey = Survey(state=await _state_of(tables))
            await survey.read(tables)
            findings = await anyio.to_thread.run_sync(lambda: list(row_verdicts(survey)))
            if CHUNKS not in survey.unreadable:
                doubles = examined.doubles = await Doubles.of(survey, tables.chunks)
                findings += doubled_verdicts(doubles.documents, doubles.shared)
            return [*findings, *await schema_verdicts(tables)]
        finally:
            tables.close()

    async def _settings(self) -> list[Finding]:
        layouts = await layouts_now(self._live.tables.settings, self._live.ref)
        current = current_layout(layouts)
        upkeep = None if current is None else current.upkeep
        return [settings_verdict(layouts), rebuild_verdict(layouts), upkeep_verdict(upkeep)]

    async def _tags(self) -> list[Finding]:
        return [tags_verdict(await Tags(self._connection, self._live.ref).infos())]

    async def _indexes(self) -> list[Finding]:
        await self._live.state()
        return [await index_verdict(self._live.tables)]

    async def _plan(self) -> list[Finding]:
        await self._live.state()
        plan = await self._vacuum.run(
            Round(
                retention=self._vacuum.retention(self._storage.vacuum_retention_seconds),
                freely=self._storage.compaction_target_bytes,
                dry_run=True,
                fragments=MANY_FRAGMENTS,
                lag=2 * LAG_ROWS,
                lag_share=2 * LAG_SHARE,
                with_versions=False,
            )
        )
        self._live.expire()
        steps = [step for step in plan.steps if not await self._is_small(step)]
        return list(plan_verdicts(plan.model_copy(update={"steps": steps})))

    async def _is_small(self, step: UpkeepStep) -> bool:
        """Whether a step is the compaction of a table that is read fast as it is, with rows deleted or not."""
        action, _, part = step.name.partition(" of ")
        if action != COMPACTION:
            return False
        shape = await getattr(self._live.tables, part).stats()
        pieces: int = shape["fragment_stats"]["num_fragments"]
        size: int = shape["total_bytes"]
        return size <= FREELY_BYTES and pieces < MANY_FRAGMENTS

    async def _writable(self) -> list[Finding]:
        path = self._live.ref.path
        if path is None:
            return []
        writable = await anyio.to_thread.run_sync(os.access, path, os.W_OK)
        trouble = "" if writable else "This user may read the database and not write to it."
        return [verdict("writable", trouble, fine="The folder can be written to.")]

    async def _repaired(self, examined: Examined) -> list[Finding]:
        """Put right what can be; what stands in the way is a finding of its own."""
        try:
            for row in stored_twice(examined.survey.state.table) if examined.survey else []:
                await keep_newest(self._writer, row["key"], row["id"])
            for document_id in examined.doubles.documents if examined.doubles else []:
                await store_once(self._writer, self._parts, document_id)
            if any(finding.check == INDEXES and finding.fixable for finding in examined.findings):
                await self._upkeep.rebuild_indexes()
            await self._upkeep.vacuum(retention_seconds=None, dry_run=False)
        except STEP_ERRORS as error:
            message = f"Not everything could be put right: {failure_reason(error)}."
            return [Finding(check="fix", status="failed", message=message, remedy=FIX)]
        return []


async def _state_of(tables: Tables) -> DocumentState:
    """The documents as they are, and then the other tables at least as new."""
    with anyio.fail_after(STALLED_SECONDS):
        found = await tables.documents.query().select(STATE_COLUMNS).to_arrow()
        version, uid = await tables.documents.version(), await tables.uid()
        await tables.checkout_latest()
    return await anyio.to_thread.run_sync(lambda: DocumentState(found, version=version, uid=uid))


def _compared(before: Iterable[Finding], after: Iterable[Finding]) -> list[Finding]:
    """What is found now, with what was put right told as such."""
    wrong = {finding.check: finding for finding in before if finding.fixable and finding.status != "ok"}
    return [_fixed(wrong[found.check]) if found.check in wrong and found.status == "ok" else found for found in after]


def _fixed(finding: Finding) -> Finding:
    changes = {"status": "ok", "message": f"Put right: {finding.message}", "remedy": "", "fixed": True}
    return finding.model_copy(update=changes)
