"""A reranker whose model has to be fetched: a small example of `Downloading`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from haiku.rag.contracts.downloads import DownloadStep
from haiku.rag.errors import RerankError
from haiku.rag.testing.overlap_reranker import OverlapReranker

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig

CHUNK = 1024


class FetchingReranker(OverlapReranker):
    """The reranker `overlap` with a download before it: the file `reranking.model.name` is copied below `data_dir`."""

    def __init__(self, config: AppConfig) -> None:
        model = config.reranking.model
        self._name = "" if model is None else model.name
        self._origin = config.resolve_path(self._name)
        self._place = Path(config.storage.data_dir, "models", self._origin.name)

    async def downloads(self) -> AsyncGenerator[DownloadStep, None]:
        """Copy the file under another name, which it keeps until it is whole."""
        if await anyio.Path(self._place).exists():
            return
        try:
            data = await anyio.Path(self._origin).read_bytes()
        except OSError as error:
            raise RerankError(f"model '{self._name}' could not be fetched: {error.strerror}.") from error
        begun = anyio.Path(self._place.with_suffix(".part"))
        await begun.parent.mkdir(parents=True, exist_ok=True)
        async with await begun.open("wb") as file:
            for start in range(0, len(data), CHUNK):
                yield DownloadStep(name=self._name, done=start, total=len(data))
                await file.write(data[start : start + CHUNK])
        await begun.replace(self._place)
        yield DownloadStep(name=self._name, done=len(data), total=len(data))
