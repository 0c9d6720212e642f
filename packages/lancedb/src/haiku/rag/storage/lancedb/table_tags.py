"""The tags of one table."""

from typing import Any

from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import TagError
from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS

ATTEMPTS = 5


async def tag_versions(table: Any) -> dict[str, int]:
    """The versions that are tagged, by the tags' names."""
    for _ in range(ATTEMPTS):
        try:
            return {name: tag["version"] for name, tag in (await table.tags.list()).items()}
        except ENGINE_ERRORS as error:
            # The engine lists the names and then reads each: one that is deleted meanwhile fails the listing.
            if not is_gone(error):
                raise
    return {name: tag["version"] for name, tag in (await table.tags.list()).items()}


async def pin(table: Any, name: str, version: int) -> None:
    """Put a tag on a version, or move it there from an older one; one on a newer version stays."""
    there = name in await tag_versions(table)
    await _move_on(table, name, version, made=not there and await created(table, name, version))


async def _move_on(table: Any, name: str, version: int, *, made: bool) -> None:
    if not made and (await tag_versions(table)).get(name, version) < version:
        await table.tags.update(name, version)


async def created(table: Any, name: str, version: int) -> bool:
    """Make a tag; False where the name is taken, which the engine tells even where two processes ask at once."""
    try:
        await table.tags.create(name, version)
    except ENGINE_ERRORS as error:
        if "already exists" not in str(error):
            raise
        return False
    return True


async def removed(table: Any, name: str) -> bool:
    """Remove a tag; False where there is none."""
    try:
        await table.tags.delete(name)
    except ENGINE_ERRORS as error:
        return _was_not_there(error)
    return True


def _was_not_there(error: Exception) -> bool:
    """False where there was nothing to remove; any other failure is raised."""
    if not is_gone(error):
        raise error
    return False


def is_gone(error: Exception) -> bool:
    """Whether the engine says that a tag is not there."""
    text = str(error).lower()
    return "not found" in text or "does not exist" in text


def no_such_tag(ref: DatabaseRef, name: str) -> TagError:
    """The error for a name that no tag has."""
    return TagError(f"database '{ref.name}' has no tag '{name}'. List them with: haiku-rag tag list.", source=ref.name)


def incomplete_tag(ref: DatabaseRef, name: str) -> TagError:
    """The error for a tag that a part of the database does not have."""
    return TagError(
        f"tag '{name}' of database '{ref.name}' is not complete and cannot be read: making or deleting it was broken "
        "off. Create it again, or delete it.",
        source=ref.name,
    )
