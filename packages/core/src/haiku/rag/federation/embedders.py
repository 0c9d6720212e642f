"""The embedders of a session: the configured one, and those that serve databases of another embedding."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
from pydantic import ValidationError

from haiku.rag.config.models import EmbeddingModelConfig
from haiku.rag.errors import ConfigMismatchError, HaikuRagError, PluginError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.plugins import EmbedderRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from haiku.rag.config import AppConfig
    from haiku.rag.contracts import DatabaseRef, Embedder


class Embedders:
    """Builds each embedder when it is first needed, and once; building one loads no model."""

    def __init__(self, config: AppConfig) -> None:
        self._config = config
        self._lock = anyio.Lock()
        self._built: list[tuple[EmbeddingModelConfig, Embedder]] = []
        self._serving: dict[EmbeddingIdentity, Embedder] = {}

    @property
    def configured(self) -> Embedder:
        """The one of `embeddings.model`, or the installed one that needs no configuration."""
        return self._of(self._config.embeddings.model)

    async def configured_identity(self) -> EmbeddingIdentity | None:
        """The configured embedding; None where no embedder is installed, and so nothing can be embedded."""
        try:
            embedder = self.configured
        except PluginError:
            return None
        return await _identity_of(embedder)

    async def serving(self, recorded: EmbeddingIdentity, ref: DatabaseRef) -> Embedder:
        """The embedder whose query vectors fit a database that records this identity.

        The configured one or one of `embeddings.others` that has the identity, or differs from it in the document
        prefix only, which no query's vector depends on; else one that is made of the identity itself.
        `ConfigMismatchError` where there is none.
        """
        async with self._lock:
            if recorded not in self._serving:
                self._serving[recorded] = await self._found(recorded, ref)
            return self._serving[recorded]

    def release(self) -> list[Embedder]:
        """All that were built, for closing; what is asked for later is built anew."""
        embedders = [embedder for _, embedder in self._built]
        self._built.clear()
        self._serving.clear()
        return embedders

    async def _found(self, recorded: EmbeddingIdentity, ref: DatabaseRef) -> Embedder:
        reasons: list[str] = []
        known: list[tuple[Embedder, EmbeddingIdentity]] = []
        for settings in self._listed(recorded):
            known += await self._tried(settings, reasons)
        if not any(_is_model(identity, recorded) for _, identity in known):
            known += await self._tried(self._settings_of(recorded), reasons)
        known.sort(key=lambda entry: entry[1] != recorded)
        for embedder, identity in known:
            if _is_model(identity, recorded):
                return embedder
        raise ConfigMismatchError(_nothing_serves(recorded, ref, reasons, known), source=ref.name)

    async def _tried(
        self, settings: EmbeddingModelConfig | None, reasons: list[str]
    ) -> list[tuple[Embedder, EmbeddingIdentity]]:
        if settings is None:
            return []
        try:
            embedder = self._of(settings)
            return [(embedder, await _identity_of(embedder))]
        except HaikuRagError as error:
            reasons.append(str(error))
            return []

    def _listed(self, recorded: EmbeddingIdentity) -> Iterator[EmbeddingModelConfig]:
        """The configured models of the provider, that of `embeddings.model` first."""
        embeddings = self._config.embeddings
        for settings in (embeddings.model, *embeddings.others):
            try:
                if self._provider(settings) == recorded.provider:
                    yield settings
            except PluginError:
                continue

    def _settings_of(self, recorded: EmbeddingIdentity) -> EmbeddingModelConfig | None:
        """What the identity says, reached as another model of the same provider is; None where it is not valid."""
        service = next(self._listed(recorded), None)
        try:
            return EmbeddingModelConfig(
                provider=recorded.provider,
                name=recorded.model,
                vector_dim=recorded.dimension,
                document_prefix=recorded.document_prefix,
                base_url=service.base_url if service else None,
                api_key=service.api_key if service else None,
            )
        except ValidationError:
            return None

    def _of(self, settings: EmbeddingModelConfig) -> Embedder:
        for known, built in self._built:
            if known == settings:
                return built
        embeddings = self._config.embeddings.model_copy(update={"model": settings})
        config = self._config.model_copy(update={"embeddings": embeddings})
        embedder: Embedder = config.kernel.create(EmbedderRecord.kind, self._provider(settings), config)
        self._built.append((settings, embedder))
        return embedder

    def _provider(self, settings: EmbeddingModelConfig) -> str:
        return settings.provider or self._config.kernel.default(EmbedderRecord).name


async def _identity_of(embedder: Embedder) -> EmbeddingIdentity:
    # A model in a folder that states its dimension nowhere has to be read for it.
    return await anyio.to_thread.run_sync(lambda: embedder.identity)


def _is_model(identity: EmbeddingIdentity, recorded: EmbeddingIdentity) -> bool:
    return replace(identity, document_prefix=recorded.document_prefix) == recorded


def _nothing_serves(
    recorded: EmbeddingIdentity,
    ref: DatabaseRef,
    reasons: list[str],
    known: list[tuple[Embedder, EmbeddingIdentity]],
) -> str:
    made = [f"the nearest one is {identity.describe()}." for _, identity in known[:1]]
    return " ".join(
        [
            f"database '{ref.name}' was written with {recorded.describe()}, and no embedder for that is at hand.",
            *(reason[:1].upper() + reason[1:] for reason in dict.fromkeys([*reasons, *made])),
            "Add its model to embeddings.others, or search by full text.",
        ]
    )
