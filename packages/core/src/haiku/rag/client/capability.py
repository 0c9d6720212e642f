"""What the engine of a database offers beyond reading and writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haiku.rag.errors import StorageError
from haiku.rag.plugins import StorageRecord

if TYPE_CHECKING:
    from haiku.rag.contracts.maintenance import Capability
    from haiku.rag.contracts.storage import DatabaseRef
    from haiku.rag.plugins.kernel import Kernel


def require_capability(kernel: Kernel, ref: DatabaseRef, capability: Capability, operation: str) -> None:
    """`StorageError` in one sentence where the record of the database's engine does not name the capability."""
    record = kernel.find(StorageRecord.kind, ref.storage).record
    if capability not in getattr(record, "capabilities", ()):
        raise StorageError(
            f"{operation} is not offered by storage '{ref.storage}', which holds database '{ref.name}'.",
            source=ref.name,
        )
