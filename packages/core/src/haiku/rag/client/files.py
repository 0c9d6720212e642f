"""Local files and folders as a source of documents."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import anyio

from haiku.rag.config.models import absolute
from haiku.rag.contracts.conversion import SourceContent
from haiku.rag.errors import UnsupportedSourceError
from haiku.rag.plugins import ConverterRecord

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv"})


class FileSource:
    """Reads a file, or the files of a folder that some installed converter reads.

    In a folder, links are not followed, and folders that begin with a dot or hold other people's code are left out.
    """

    def __init__(self, config: AppConfig) -> None:
        self._converters = config.kernel.records(ConverterRecord)
        self._max_bytes = config.processing.max_file_bytes

    async def discover(self, location: str) -> AsyncIterator[str]:
        """The file's own URI, or those of the folder's readable files, in path order."""
        path = local_path(location)
        if await anyio.to_thread.run_sync(path.is_dir):
            for found in await anyio.to_thread.run_sync(lambda: sorted(self._walk(path))):
                yield found.as_uri()
        elif await anyio.to_thread.run_sync(os.path.lexists, path):
            yield path.as_uri()
        else:
            raise UnsupportedSourceError(f"there is no file or folder '{path}'.")

    async def fetch(self, uri: str) -> SourceContent:
        """The file's bytes."""
        return await anyio.to_thread.run_sync(self._read, local_path(uri))

    def _read(self, path: Path) -> SourceContent:
        try:
            if path.is_dir():
                os.scandir(path).close()  # says why a folder was not walked
            if path.exists() and not path.is_file():
                raise UnsupportedSourceError(f"'{path}' is not a regular file.")
            if path.stat().st_size > self._max_bytes:
                raise UnsupportedSourceError(
                    f"'{path}' is larger than processing.max_file_bytes ({self._max_bytes:,} bytes)."
                )
            return SourceContent(uri=path.as_uri(), name=path.name, data=path.read_bytes())
        except OSError as error:
            raise UnsupportedSourceError(f"'{path}' cannot be read: {error.strerror}.") from None

    def _walk(self, root: Path) -> Iterator[Path]:
        closed: list[Path] = []

        def note(error: OSError) -> None:
            if error.filename == str(root):
                raise UnsupportedSourceError(f"the folder '{root}' cannot be read: {error.strerror}.") from None
            closed.append(Path(error.filename))

        for folder, names, files in os.walk(root, onerror=note):
            names[:] = sorted(name for name in names if not name.startswith(".") and name not in SKIPPED_FOLDERS)
            for name in files:
                path = Path(folder, name)
                if any(record.reads(name) for record in self._converters) and not path.is_symlink():
                    yield path
        yield from closed  # each is a failure of its own when it is fetched


def local_path(location: str) -> Path:
    """The absolute path of a `file:` URI or a path; `~` expands."""
    if location.startswith("file://"):
        return Path(unquote(urlsplit(location).path, errors="surrogateescape"))
    if "\0" in location or not location.strip():
        raise UnsupportedSourceError("the path is blank or holds a NUL character.")
    return absolute(location)
