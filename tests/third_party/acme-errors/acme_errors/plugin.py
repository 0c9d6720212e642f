"""What acme-errors registers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from haiku.rag.plugins import CommandRecord, ErrorRecord, hookimpl

if TYPE_CHECKING:
    from haiku.rag.contracts import DatabaseRef
    from haiku.rag.errors import HaikuRagError


@hookimpl
def haiku_rag_register_error() -> Iterable[ErrorRecord]:
    """The error `acme-quota`."""
    yield ErrorRecord(
        name="acme-quota", summary="The quota is used up", factory="acme_errors.errors:QuotaError", exit_status=75
    )


@hookimpl
def haiku_rag_register_command() -> Iterable[CommandRecord]:
    """A command that fails with it."""
    yield CommandRecord(name="acme-spend", summary="Spend the quota", factory="acme_errors.errors:spend")


@hookimpl
def haiku_rag_translate_error(error: Exception, ref: DatabaseRef) -> HaikuRagError | None:
    """What a full disk means to acme."""
    from acme_errors.errors import QuotaError

    if isinstance(error, OSError) and error.errno == 122:
        return QuotaError(f"database '{ref.name}' has used up its quota. Ask for more.", source=ref.name)
    return None
