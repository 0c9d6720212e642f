"""`examine`: everything about one database that can be wrong, as findings."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, cast

import anyio
from pydantic import BaseModel

from haiku.rag.contracts.maintenance import Finding
from haiku.rag.contracts.storage import OpenMode
from haiku.rag.errors import ConfigMismatchError, HaikuRagError, MigrationRequiredError, PluginError
from haiku.rag.federation.boundary import attempt
from haiku.rag.federation.identity import check_identity
from haiku.rag.federation.session import Session, close_resource
from haiku.rag.plugins import HealthCheckRecord, StorageRecord
from haiku.rag.plugins.kernel import FAILURES, not_loaded

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig
    from haiku.rag.contracts.health import HealthCheck
    from haiku.rag.contracts.maintenance import Capability, CheckedDatabase, MigratingStorage
    from haiku.rag.contracts.storage import Database, DatabaseRef
    from haiku.rag.federation.scope import DatabaseScope
    from haiku.rag.models import EmbeddingIdentity
    from haiku.rag.plugins.kernel import Kernel

HEALTH_SECONDS = 10.0
"""How long one plugin's check may take."""


class DoctorReport(BaseModel):
    """What was found about the database called `source`, about its plugins and about the configuration."""

    source: str
    findings: list[Finding]

    @property
    def failed(self) -> list[Finding]:
        """What has to be seen to."""
        return [finding for finding in self.findings if finding.status == "failed"]

    @property
    def warnings(self) -> list[Finding]:
        """What works, and not as well as it could."""
        return [finding for finding in self.findings if finding.status == "warning"]


async def examine(scope: DatabaseScope, config: AppConfig, *, fix: bool = False, probe: bool = False) -> DoctorReport:
    """Examine the one database of a scope. Whatever is wrong with it is a finding, and never an exception.

    Nothing is changed, except that `fix` puts right what is safe to put right and `probe` writes scratch to an object
    store and removes it again. `AmbiguousDatabaseError` for several databases, `TagError` for one that is read at a
    tag.
    """
    ref = scope.live("doctor")
    session = Session(config, scope, OpenMode.WRITE if fix or probe else OpenMode.READ)
    session.enter()
    try:
        findings = await Examination(session=session, ref=ref, fix=fix, probe=probe).findings()
    finally:
        with anyio.CancelScope(shield=True):
            await session.close()
    return DoctorReport(source=ref.name, findings=[*_plugins(config.kernel), *findings, *await health_findings(config)])


@dataclass(frozen=True, kw_only=True)
class Examination:
    """The part that is about the database itself."""

    session: Session
    ref: DatabaseRef
    fix: bool
    probe: bool

    async def findings(self) -> list[Finding]:
        """Whether it opens, whether the configuration fits it, and what its engine says."""
        timeout_s = self.session.config.search.timeout_s
        outcome = await attempt(self.session.kernel, self.ref, self._opened, timeout_s=timeout_s)
        if outcome.value is None:
            return [await self._unopened(outcome.error), *(await self._embedding(None))]
        database = outcome.value
        try:
            opened = Finding(check="database", status="ok", message="The database can be opened.")
            return [opened, *await self._embedding(database.identity), *await self._checks(database)]
        finally:
            await close_resource(database)

    async def _opened(self) -> Database:
        # Whatever its embedding: that it is another one is a finding.
        return await self.session.storage(self.ref).open(self.ref, mode=self.session.mode, identity=None)

    async def _unopened(self, error: HaikuRagError | None) -> Finding:
        message, remedy = str(error), _remedy(error)
        if isinstance(error, MigrationRequiredError):
            steps = await attempt(
                self.session.kernel, self.ref, self._migrations, timeout_s=self.session.config.search.timeout_s
            )
            message = " ".join([message, *(steps.value or [])])
        return Finding(check="database", status="failed", message=message, remedy=remedy)

    async def _migrations(self) -> list[str]:
        """What a migration would do, a sentence a step."""
        if not self._offers("migrations"):
            return []
        storage = cast("MigratingStorage", self.session.storage(self.ref))
        steps = await storage.pending_migrations(self.ref)
        return [f"Version {step.version}: {step.summary.removesuffix('.')}." for step in steps]

    async def _embedding(self, recorded: EmbeddingIdentity | None) -> list[Finding]:
        try:
            configured = await self.session.configured_identity()
        except FAILURES as error:
            words = str(error) if isinstance(error, HaikuRagError) else type(error).__name__
            return [Finding(check="embedder", status="failed", message=f"The embedder cannot be used: {words}")]
        if configured is None:
            remedy = "pip install 'haiku-rag-core[default]'"
            message = "No embedder is installed or configured, so nothing can be embedded."
            return [Finding(check="embedder", status="warning", message=message, remedy=remedy)]
        return [] if recorded is None else [self._drift(recorded, configured)]

    def _drift(self, recorded: EmbeddingIdentity, configured: EmbeddingIdentity) -> Finding:
        """Another model keeps the database from being written, another dimension from being searched as well."""
        try:
            check_identity(recorded, configured, self.ref, writable=True)
        except ConfigMismatchError as error:
            mixed = self.session.config.search.mixed_embedders == "allow"
            is_searched = mixed or recorded.dimension == configured.dimension
            return Finding(
                check="embedding",
                status="warning" if is_searched else "failed",
                message=str(error),
                remedy="haiku-rag rebuild --embed-only",
            )
        return Finding(check="embedding", status="ok", message=f"Embedded with {recorded.describe()}, as configured.")

    async def _checks(self, database: Database) -> list[Finding]:
        if not self._offers("checks"):
            message = f"Storage '{self.ref.storage}' has no checks of its own, so the rows were not read."
            return [Finding(check="checks", status="warning", message=message)]
        checked = cast("CheckedDatabase", database)
        outcome = await attempt(
            self.session.kernel, self.ref, lambda: checked.check(fix=self.fix, probe=self.probe), timeout_s=inf
        )
        if outcome.error is None:
            return outcome.value or []
        return [Finding(check="checks", status="failed", message=str(outcome.error), remedy=_remedy(outcome.error))]

    def _offers(self, capability: Capability) -> bool:
        record = self.session.kernel.find(StorageRecord.kind, self.ref.storage).record
        return capability in getattr(record, "capabilities", ())


def _remedy(error: HaikuRagError | None) -> str:
    """The command that the message ends with."""
    if isinstance(error, MigrationRequiredError):
        return "haiku-rag migrate"
    return str(error).partition(" with: ")[2].rstrip(".")


def _plugins(kernel: Kernel) -> list[Finding]:
    """Plugins that were not loaded for a fault, and names that two provide."""
    wrong = [not_loaded(plugin) for plugin in kernel.plugins if plugin.status == "failed"] + kernel.conflicts()
    if not wrong:
        return [Finding(check="plugins", status="ok", message="Every plugin is loaded.")]
    return [Finding(check="plugins", status="warning", message=text, remedy="haiku-rag plugins") for text in wrong]


async def health_findings(config: AppConfig) -> list[Finding]:
    """What the checks of plugins find, by their names; one that fails is a finding, and disturbs no other."""
    found: dict[str, list[Finding]] = {}

    async def run(name: str) -> None:
        found[name] = await _checked(config, name)

    async with anyio.create_task_group() as group:
        for record in config.kernel.records(HealthCheckRecord):
            group.start_soon(run, record.name)
    return [finding for name in sorted(found) for finding in found[name]]


async def _checked(config: AppConfig, name: str) -> list[Finding]:
    try:
        check: HealthCheck = config.kernel.resolve(HealthCheckRecord.kind, name)
        with anyio.fail_after(HEALTH_SECONDS):
            findings = await check(config)
        return [Finding.model_validate(finding, strict=True) for finding in findings]
    except PluginError as error:
        message = str(error)
    except TimeoutError:
        message = f"The check '{name}' did not end in time."
    except FAILURES as error:
        message = f"The check '{name}' failed: {type(error).__name__}."
    return [Finding(check=name, status="failed", message=message, remedy="haiku-rag plugins check")]
