"""The per-database boundary: what one database does comes back as an outcome, and never as a raised exception."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Generic, TypeVar

import anyio

from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.errors import (
    ConfigMismatchError,
    EmbeddingError,
    HaikuRagError,
    MigrationRequiredError,
    MissingDatabaseError,
    PluginError,
    ReadOnlyError,
    SourceUnavailableError,
    StorageError,
    TagError,
    tree,
)
from haiku.rag.federation.request import OnUnavailable
from haiku.rag.models import DatabaseStatus
from haiku.rag.plugins.kernel import Kernel

logger = logging.getLogger(__name__)
T = TypeVar("T")

KEPT = (MigrationRequiredError, ConfigMismatchError, TagError, ReadOnlyError)
"""Failures of a configured database that keep their type."""

LEFT_OUT = (SourceUnavailableError, StorageError, ConfigMismatchError, EmbeddingError)
"""Failures that `on_unavailable` may turn into a database left out; every other kind is the caller's to know."""


@dataclass(frozen=True, kw_only=True)
class Outcome(Generic[T]):
    """What asking one database gave: a value, or the error to raise and the status to report."""

    ref: DatabaseRef
    value: T | None = None
    error: HaikuRagError | None = None
    status: DatabaseStatus = "ok"
    milliseconds: float = 0.0


async def attempt(
    kernel: Kernel, ref: DatabaseRef, operation: Callable[[], Awaitable[T]], *, timeout_s: float
) -> Outcome[T]:
    """Run one database's part under its deadline. Cancellation passes through."""
    started = perf_counter()
    try:
        with anyio.fail_after(max(timeout_s, 0.0)):
            value = await operation()
        return Outcome(ref=ref, value=value, milliseconds=_since(started))
    except Exception as error:  # noqa: BLE001 - the per-database boundary
        caught = error
    return failed(kernel, ref, caught, milliseconds=_since(started))


def failed(kernel: Kernel, ref: DatabaseRef, error: Exception, *, milliseconds: float = 0.0) -> Outcome[T]:
    """The outcome of a failure, with the error that a caller may see."""
    status: DatabaseStatus = "unavailable"
    if isinstance(error, TimeoutError):
        status = "timeout"
    elif isinstance(error, FileNotFoundError | MissingDatabaseError):
        status = "missing"
    logger.debug("database '%s': %s", ref.name, type(error).__name__)
    seen = _translated(kernel, ref, error)
    seen.source = seen.source or ref.name
    if not ref.given:
        seen = seen.with_traceback(None)
        seen.__cause__ = seen.__context__ = None
    return Outcome(ref=ref, error=seen, status=status, milliseconds=milliseconds)


def _translated(kernel: Kernel, ref: DatabaseRef, error: Exception) -> HaikuRagError:
    try:
        answer = kernel.decide("haiku_rag_translate_error", error=error, ref=ref)
    except HaikuRagError as broken:  # raised where it was to be returned, or a failure of the plugin
        if isinstance(broken, PluginError):
            logger.warning("%s", str(broken).partition(": ")[0])  # its own words may say where the database is
        answer = None
    if not isinstance(answer, HaikuRagError):
        answer = translate_error(error, ref)
    return (
        answer if _may_be_seen(kernel, answer, ref) else unavailable(ref, f"cannot be read ({type(answer).__name__})")
    )


def _may_be_seen(kernel: Kernel, error: HaikuRagError, ref: DatabaseRef) -> bool:
    """Whether the text keeps to itself where a configured database is: core's do, a plugin's as its record says."""
    if ref.given:
        return True
    if ref.location in str(error):
        return False
    record = kernel.error_record(type(error))
    return type(error).__module__ == tree.__name__ if record is None else not record.names_location


def translate_error(error: Exception, ref: DatabaseRef) -> HaikuRagError:
    """Core's own answer to `haiku_rag_translate_error`: names the database, and its location only to who gave it."""
    if isinstance(error, FileNotFoundError | MissingDatabaseError):
        value = (ref.location if ref.given else ref.name).replace("'", r"'\''")  # as a shell reads it back
        command = f"init --db '{value}'" if ref.given else f"--db-name '{value}' init"
        return unavailable(ref, "does not exist", f"Create it with: haiku-rag {command}")
    if isinstance(error, TimeoutError):
        return unavailable(ref, "did not answer in time", "Try again, or raise search.timeout_s.")
    if ref.given:
        return error if isinstance(error, HaikuRagError) else unavailable(ref, f"cannot be read: {_first_line(error)}")
    return _of_configured(error, ref)


def _of_configured(error: Exception, ref: DatabaseRef) -> HaikuRagError:
    for kept in KEPT:
        if isinstance(error, kept):
            return kept(_named(str(error), ref), source=ref.name)
    if isinstance(error, HaikuRagError) and not isinstance(error, StorageError | SourceUnavailableError):
        return error
    if type(error) is StorageError and not _tells_where(str(error), ref):
        return SourceUnavailableError(_named(str(error), ref), source=ref.name)
    return unavailable(ref, f"cannot be read ({type(error).__name__})")


def unavailable(ref: DatabaseRef, what: str, remedy: str = "") -> SourceUnavailableError:
    """The error for a database that does not answer. Says where it is only to who gave the path."""
    where = f" at '{ref.location}'" if ref.given else ""
    advice = remedy or ("" if ref.given else "Check its entry in the configuration and whether its store is reachable.")
    return SourceUnavailableError(f"database '{ref.name}'{where} {what}. {advice}".rstrip(), source=ref.name)


def _named(message: str, ref: DatabaseRef) -> str:
    clean = message.replace(ref.location, ref.name)
    return clean if f"'{ref.name}'" in clean else f"database '{ref.name}': {clean}"


def _tells_where(message: str, ref: DatabaseRef) -> bool:
    """Whether a part of the location, such as a bucket, a host or a folder, is in the text beside the name."""
    rest = message.replace(f"'{ref.name}'", "")
    return any(part in rest for part in re.split(r"[/\\:@]+", ref.location) if len(part) > 2)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0] or type(error).__name__


def _since(started: float) -> float:
    return (perf_counter() - started) * 1000


async def attempt_all(
    kernel: Kernel,
    refs: Sequence[DatabaseRef],
    operation: Callable[[DatabaseRef], Awaitable[T]],
    *,
    timeout_s: float,
) -> list[Outcome[T]]:
    """Ask every database at once; the outcomes come in the order of `refs`."""
    outcomes: dict[int, Outcome[T]] = {}

    async def ask(index: int, ref: DatabaseRef) -> None:
        outcomes[index] = await attempt(kernel, ref, lambda: operation(ref), timeout_s=timeout_s)

    async with anyio.create_task_group() as group:
        for index, ref in enumerate(refs):
            group.start_soon(ask, index, ref)
    return [outcomes[index] for index in range(len(refs))]


def failure_to_raise(outcomes: Iterable[Outcome[T]], on_unavailable: OnUnavailable) -> HaikuRagError | None:
    """The error that the outcomes call for under `on_unavailable`, or None when those that answered will do."""
    everything = list(outcomes)
    errors = [outcome.error for outcome in everything if outcome.error is not None]
    if not errors:
        return None
    fatal = [error for error in errors if not isinstance(error, LEFT_OUT)]
    if fatal:
        return fatal[0]
    required = everything if on_unavailable == "raise" else []
    if not isinstance(on_unavailable, str):
        required = [outcome for outcome in everything if outcome.ref.name in on_unavailable]
    missing = [outcome.error for outcome in required if outcome.error is not None]
    if not missing and len(errors) == len(everything):
        missing = errors
    missing = list(dict.fromkeys(missing))  # databases of one embedder share its failure
    if len(missing) > 1:
        return SourceUnavailableError("; ".join(str(error) for error in missing), source=missing[0].source)
    return missing[0] if missing else None
