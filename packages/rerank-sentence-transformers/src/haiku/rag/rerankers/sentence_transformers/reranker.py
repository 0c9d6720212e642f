"""The reranker `sentence-transformers`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from threading import Event
from typing import TypeVarTuple, Unpack

import anyio
import numpy as np
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from haiku.rag.config import AppConfig, ModelConfig
from haiku.rag.contracts.downloads import DownloadStep
from haiku.rag.contracts.reranker import RerankCandidate
from haiku.rag.errors import ConfigError, RerankError
from haiku.rag.rerankers.sentence_transformers.background import PAUSE, Background
from haiku.rag.rerankers.sentence_transformers.batches import length_sorted
from haiku.rag.rerankers.sentence_transformers.library import NAME, require_libraries
from haiku.rag.rerankers.sentence_transformers.model import CrossEncoderModel, Scores
from haiku.rag.rerankers.sentence_transformers.place import ModelPlace, place_of
from haiku.rag.rerankers.sentence_transformers.section import CrossEncoderSection
from haiku.rag.rerankers.sentence_transformers.tracking import Tracker

Given = TypeVarTuple("Given")
USED = {"provider", "name", "api_key"}
STOP_SECONDS = 2.0
"""How long a fetch that is to stop is waited for."""


def create_sentence_transformers(config: AppConfig) -> CrossEncoderReranker:
    """The reranker of a configuration. Loads nothing; `ConfigError` for a model that it says too little or too much of.

    `MissingDependencyError` where sentence-transformers is not installed.
    """
    require_libraries()
    model = _checked(config.reranking.model)
    section: CrossEncoderSection = config.section("rerank_sentence_transformers")
    key = None if model.api_key is None else model.api_key.get_secret_value()
    place = place_of(model.name, config.resolve_path(model.name), revision=section.revision, token=key)
    return CrossEncoderReranker(place, section)


def _checked(model: ModelConfig | None) -> ModelConfig:
    if model is None or not model.name.strip():
        raise ConfigError(
            f"reranking.model.name: reranker '{NAME}' needs the folder of a cross-encoder, or its name on the hub."
        )
    unused = sorted(model.model_fields_set - USED)
    if unused:
        raise ConfigError(f"reranking.model.{unused[0]}: reranker '{NAME}' has no use for it. Leave it out.")
    return model


class CrossEncoderReranker:
    """A cross-encoder in this process: it reads the query together with each passage.

    Nothing is imported or loaded before the first passages are to be scored. Whoever is cancelled while the model is
    loaded, or fetched, leaves that to go on for whoever comes next. Passages are scored in a worker thread, batch by
    batch, one batch at a time; whoever is cancelled goes at once, and no other batch of theirs begins.
    """

    def __init__(self, place: ModelPlace, section: CrossEncoderSection) -> None:
        self._place = place
        self._section = section
        self._loading: Background[CrossEncoderModel] | None = None
        self._tracker = Tracker()
        self._limiters: RunVar[CapacityLimiter] = RunVar(f"{__name__}.{id(self)}")

    @property
    def scale(self) -> tuple[float, float] | None:
        """From 0 to 1, unless the model's numbers are left as they are."""
        return (0.0, 1.0) if self._section.activation == "sigmoid" else None

    async def rerank(self, query: str, candidates: Sequence[RerankCandidate], limit: int) -> list[tuple[int, float]]:
        """Every candidate with its score, best first; of equals the one that was offered first."""
        if not candidates:
            return []
        model = await self._model()
        texts = [candidate.text for candidate in candidates]
        scores = np.zeros(len(texts))
        given_up = Event()
        try:
            for batch in length_sorted(texts, self._section.batch_size):
                scores[batch] = await self._in_thread(model.scores, query, [texts[index] for index in batch], given_up)
        finally:
            given_up.set()
        return [(int(index), float(scores[index])) for index in np.argsort(-scores, kind="stable")]

    async def downloads(self) -> AsyncGenerator[DownloadStep, None]:
        """Fetch the model from the hub, where it is of the hub and not on this disk whole and up to date."""
        hub = self._place.hub
        if hub is None:
            self._place.require()
            return
        tracker = Tracker()
        fetching = Background(lambda: hub.fetch(tracker))
        try:
            told = -1
            while not fetching.ended:
                if tracker.total and tracker.done > told:
                    told = tracker.done
                    yield DownloadStep(name=hub.repository, done=told, total=tracker.total)
                await anyio.sleep(PAUSE)
            await fetching.result()
            if tracker.total:
                yield DownloadStep(name=hub.repository, done=tracker.total, total=tracker.total)
        finally:
            tracker.stop()
            with anyio.move_on_after(STOP_SECONDS, shield=True):
                await fetching.end()

    async def close(self) -> None:
        """Release the model, and stop fetching it; a later call loads it again."""
        self._tracker.stop()
        self._loading = None

    async def _model(self) -> CrossEncoderModel:
        if self._loading is None:
            self._tracker = Tracker()
            self._loading = Background(self._loader(self._tracker))
        loading = self._loading
        try:
            return await loading.result()
        except RerankError:
            if self._loading is loading:  # so that the next one tries again
                self._loading = None
            raise

    def _loader(self, tracker: Tracker) -> Callable[[], CrossEncoderModel]:
        place, section = self._place, self._section
        return lambda: CrossEncoderModel(place.folder(tracker, offline=section.offline), place.name, section)

    async def _in_thread(self, work: Callable[[Unpack[Given]], Scores], *given: *Given) -> Scores:
        limiter = self._limiters.get(None)
        if limiter is None:
            limiter = CapacityLimiter(1)
            self._limiters.set(limiter)
        return await anyio.to_thread.run_sync(work, *given, limiter=limiter, abandon_on_cancel=True)
