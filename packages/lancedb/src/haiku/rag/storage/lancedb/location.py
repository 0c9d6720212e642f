"""Where a local database is, checked before anything connects: connecting would create the folder."""

from pathlib import Path

from haiku.rag.contracts import DatabaseRef, OpenMode
from haiku.rag.errors import MissingDatabaseError, StorageError


def missing(ref: DatabaseRef) -> MissingDatabaseError:
    """The error for a location that holds no database."""
    where = f" at {ref.location}" if ref.given else ""
    return MissingDatabaseError(
        f"there is no database '{ref.name}'{where}. Create it with: haiku-rag init.", source=ref.name
    )


def check_folder(ref: DatabaseRef, mode: OpenMode) -> None:
    """Refuse a local path that holds a file, or nothing while the mode does not create. Blocking."""
    path = ref.path
    if path is None:
        return
    if path.exists() and not path.is_dir():
        where = str(path) if ref.given else "its location"
        raise StorageError(
            f"database '{ref.name}' cannot be opened: {where} is a file, not a folder. Give the database's folder.",
            source=ref.name,
        )
    if not path.exists() and mode is not OpenMode.CREATE:
        raise missing(ref)


def make_folder(path: Path) -> None:
    """The folder of a database that is about to be created, with its parents. Blocking."""
    path.mkdir(parents=True, exist_ok=True)


def folder_size(path: Path) -> int:
    """The bytes of all files below a folder; a file that goes away meanwhile counts nothing. Blocking."""
    total = 0
    for file in path.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:  # pragma: no cover - another process removed it between the two calls
            continue
    return total
