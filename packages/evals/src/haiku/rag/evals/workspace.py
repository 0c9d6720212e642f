"""What is kept between runs: vectors, which take long to make, and databases that are whole."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from uuid import uuid4

import anyio
import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from haiku.rag.evals.datasets import Dataset
from haiku.rag.evals.progress import OnStep, Step, unseen
from haiku.rag.models import EmbeddingIdentity

Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Awaitable[Vectors]]

BLOCK = 512
"""So many passages are embedded before their vectors are kept."""
SAME_COSINE = 0.9999
"""Vectors of one passage that are less alike than this were made by different models, whatever these are called."""
LEFTOVER_SECONDS = 24 * 60 * 60


def default_workspace() -> Path:
    """A folder in the platform's cache, such as `~/.cache/haiku.rag/evals`."""
    return user_cache_path("haiku.rag", appauthor=False) / "evals"


class Workspace:
    """A folder with vectors and databases. Several processes may use it at once, and any may be killed at any point.

    Nothing in it is irreplaceable: it can be deleted as a whole.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = Path(folder).expanduser().absolute() if folder is not None else default_workspace()
        self._vectors = self.folder / "vectors"
        self._databases = self.folder / "databases"

    async def vectors(
        self, dataset: Dataset, identity: EmbeddingIdentity, embed: Embed, *, on_step: OnStep = unseen
    ) -> Vectors:
        """One row a passage: those that are kept, and those that `embed` makes of the rest, kept block by block.

        The first passage is embedded each time. Where its vector is not the kept one the model has changed under its
        name, and all are made anew.
        """
        contents = [passage.content for passage in dataset.passages]
        folder = self._vectors / _hashed(dataset.content_digest, identity.describe())
        if not await anyio.to_thread.run_sync(_made_by, folder, np.asarray(await embed(contents[:1]), np.float32)):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
        blocks = []
        for start in range(0, len(contents), BLOCK):
            part = contents[start : start + BLOCK]
            on_step(Step(label=f"{dataset.name}: embedding", done=start, total=len(contents)))
            blocks.append(await self._block(folder / f"{start:08}.npy", part, embed))
        on_step(Step(label=f"{dataset.name}: embedding", done=len(contents), total=len(contents)))
        return np.concatenate(blocks)

    async def _block(self, path: Path, contents: Sequence[str], embed: Embed) -> Vectors:
        kept = await anyio.to_thread.run_sync(_read_block, path, len(contents))
        if kept is not None:
            return kept
        made = np.asarray(await embed(contents), dtype=np.float32)
        await anyio.to_thread.run_sync(_write_block, path, made)
        return made

    def database(self, key: str) -> tuple[Path, int] | None:
        """The database that is kept for a key, and how many documents it holds."""
        try:
            record = json.loads(self._record(key).read_text(encoding="utf-8"))
            return self._databases / str(record["name"]), int(record["documents"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def new_database(self, key: str, suffix: str) -> Path:
        """Where to make a database for a key; until `keep` it counts as left over."""
        self._databases.mkdir(parents=True, exist_ok=True)
        return self._databases / f"{key}-{uuid4().hex[:8]}{suffix}"

    def keep(self, key: str, path: Path, *, documents: int) -> None:
        """The database is whole: later runs use it."""
        record = json.dumps({"name": path.name, "documents": documents})
        _replace(self._record(key), record.encode())

    def tidy(self) -> None:
        """Remove databases, a day old or more, that were never finished or that another one has replaced."""
        records = [self.database(path.stem) for path in self._databases.glob("*.json")]
        kept = {record[0] for record in records if record is not None}
        for path in self._databases.glob("*-*"):
            if path not in kept and path.stat().st_mtime < time.time() - LEFTOVER_SECONDS:
                shutil.rmtree(path, ignore_errors=True)

    def _record(self, key: str) -> Path:
        return self._databases / f"{key}.json"


def database_key(*parts: str) -> str:
    """A name for a database by all that decides what is in it."""
    return _hashed(*parts)


def _hashed(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _made_by(folder: Path, first: Vectors) -> bool:
    try:
        kept = np.load(folder / f"{0:08}.npy")[:1]
    except (OSError, ValueError):
        return False
    if kept.shape != first.shape:
        return False
    lengths = float(np.linalg.norm(kept) * np.linalg.norm(first))
    return lengths > 0 and float(np.vdot(kept, first)) / lengths > SAME_COSINE


def _read_block(path: Path, count: int) -> Vectors | None:
    try:
        kept: Vectors = np.load(path)
    except (OSError, ValueError):
        return None
    return kept if len(kept) == count else None


def _write_block(path: Path, vectors: Vectors) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{uuid4().hex[:8]}")
    with beside.open("wb") as file:
        np.save(file, vectors)
    os.replace(beside, path)  # noqa: PTH105 - replaces on every platform


def _replace(path: Path, data: bytes) -> None:
    beside = path.with_suffix(f".{uuid4().hex[:8]}")
    beside.write_bytes(data)
    os.replace(beside, path)  # noqa: PTH105 - replaces on every platform
