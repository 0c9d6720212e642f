"""Taking a database to the current schema. It cannot be opened before, so no client is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import anyio

from haiku.rag.client.capability import require_capability
from haiku.rag.contracts.storage import OpenMode
from haiku.rag.federation.boundary import attempt
from haiku.rag.federation.session import Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from haiku.rag.config import AppConfig
    from haiku.rag.contracts.maintenance import MigratingStorage, Migration
    from haiku.rag.contracts.storage import DatabaseRef
    from haiku.rag.federation.scope import DatabaseScope

    Step = Callable[[MigratingStorage, DatabaseRef], Awaitable[Sequence[Migration]]]


async def pending_migrations(scope: DatabaseScope, config: AppConfig) -> list[Migration]:
    """The steps that the scope's one live database lacks; none where it is current. Changes nothing."""

    async def pending(storage: MigratingStorage, ref: DatabaseRef) -> Sequence[Migration]:
        return await storage.pending_migrations(ref)

    return await _migrating(scope, config, "reading which migrations are pending", pending)


async def migrate(scope: DatabaseScope, config: AppConfig) -> list[Migration]:
    """Take the steps that the scope's one live database lacks, and return them.

    Broken off at any point it leaves the database whole, at one of the versions; called again it goes on.
    """

    async def migrated(storage: MigratingStorage, ref: DatabaseRef) -> Sequence[Migration]:
        return await storage.migrate(ref)

    return await _migrating(scope, config, "migrating", migrated)


async def _migrating(scope: DatabaseScope, config: AppConfig, operation: str, step: Step) -> list[Migration]:
    ref = scope.live(operation)
    require_capability(config.kernel, ref, "migrations", operation)
    session = Session(config, scope, OpenMode.WRITE)
    session.enter()

    async def part() -> list[Migration]:
        return list(await step(cast("MigratingStorage", session.storage(ref)), ref))

    try:
        outcome = await attempt(config.kernel, ref, part, timeout_s=float("inf"))
    finally:
        with anyio.CancelScope(shield=True):
            await session.close()
    if outcome.error is not None:
        raise outcome.error
    return outcome.value or []
