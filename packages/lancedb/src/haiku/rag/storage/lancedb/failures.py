"""Engine failures as errors that name the database and never its location."""

import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pyarrow as pa

from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import HaikuRagError, StorageError

T = TypeVar("T")

ENGINE_ERRORS: tuple[type[Exception], ...] = (RuntimeError, ValueError, OSError, pa.ArrowException)
"""What LanceDB raises."""
STEP_ERRORS: tuple[type[Exception], ...] = (HaikuRagError, *ENGINE_ERRORS)
"""What work beside the reads and writes may meet, and leave to them to report."""

MISSING, DAMAGED, FULL = "a part of it is missing", "a part of it is damaged", "the disk is full"
ADVICE = {
    MISSING: "See what is lost with: haiku-rag doctor.",
    DAMAGED: "See what is lost with: haiku-rag doctor.",
    FULL: "Make room, then try again.",
}
"""What to do where trying again does not help."""
ENGINE_SOURCE = re.compile(r",? ?/\S+\.rs:\d+:\d+")
"""Where in its own source the engine failed, which tells a user nothing."""
WITH_SLASH = re.compile(r"[^\s<>]*/[^\s<>]*")
CONFLICT_SIGNS = ("conflict", "concurrent writers")
REASONS = (
    (CONFLICT_SIGNS, "other processes kept writing to it"),
    (("api_key or oauth",), "lancedb.api_key is not set"),
    (("badscheme",), "its endpoint is not https, and allow_http is not set in lancedb.storage_options"),
    (
        (
            "no azure account",
            "invalid access key:",
            "service account file",
            "known pattern",
            "no object store provider",
        ),
        "lancedb.storage_options do not fit it",
    ),
    (("nosuchbucket", "containernotfound"), "its bucket does not exist"),
    (("not found", "no such file"), MISSING),
    (("permission", "forbidden", "access denied", "read-only file system"), "permission was refused"),
    (("credential", "unauthorized", "signature", "invalidaccesskey"), "the credentials were refused"),
    (("no space",), FULL),
    (
        (
            "failed to fill whole buffer",
            "invalid range",
            "file size is too small",
            "failed to decode protobuf",
            "unknown lance storage version",
            "magic number",
            "panicked",
        ),
        DAMAGED,
    ),
    (("timed out", "timeout", "connection", "dns", "retry limit"), "the store did not answer"),
)


def is_conflict(error: Exception) -> bool:
    """Whether another writer's commit came first, so that trying again helps."""
    text = _said(error)
    return any(sign in text for sign in CONFLICT_SIGNS)


def failure_reason(error: Exception) -> str:
    """Why something failed, without the engine's words: they name locations."""
    return _known_reason(error) or f"the storage engine reported a {type(error).__name__}"


def _known_reason(error: Exception) -> str | None:
    text = "timed out" if isinstance(error, TimeoutError) else _said(error)
    return next((reason for signs, reason in REASONS if any(sign in text for sign in signs)), None)


def _said(error: Exception) -> str:
    """What the engine says without paths and URIs, whose words mean nothing: a folder may be called `conflict`."""
    return WITH_SLASH.sub("", str(error).lower())


def engine_failure(ref: DatabaseRef, action: str, error: Exception) -> StorageError:
    """The error for a failed action; the engine's own words only where the caller typed the location."""
    reason = known = _known_reason(error)
    if ref.given:
        said = ENGINE_SOURCE.sub("", str(error))
        reason = f"{known} ({said})" if known else said
    reason = reason or failure_reason(error)
    advice = ADVICE.get(known or "", "Check that it can be reached, then try again.")
    return StorageError(f"database '{ref.name}' could not be {action}: {reason}. {advice}", source=ref.name)


async def reported(ref: DatabaseRef, action: str, operation: Callable[[], Awaitable[T]]) -> T:
    """Run an operation; what the engine raises becomes a `StorageError` without the original behind it."""
    try:
        return await operation()
    except HaikuRagError:
        raise
    except ENGINE_ERRORS as error:
        failure = engine_failure(ref, action, error)
    raise failure
