"""The contract of a health check, which `doctor` runs beside what the database's engine checks itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from haiku.rag.contracts.maintenance import Finding

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig


class HealthCheck(Protocol):
    """An asynchronous function that looks at one thing outside of databases: a service, a key, a model's folder.

    It changes nothing, and says in its findings neither keys nor where databases are. All checks run at once, each for
    at most 10 seconds. One that raises, runs over its time or returns anything else is a failed finding of its name.
    """

    async def __call__(self, config: AppConfig) -> Sequence[Finding]:
        """What was found; an empty sequence where there is nothing to say, as when the thing is not configured."""
