"""What is compared: ways of searching, and where they are applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from haiku.rag.config import AppConfig, ModelConfig
from haiku.rag.models import SearchType
from haiku.rag.plugins import FusionRecord, RerankerRecord

NO_RERANKER = "none"


class Mode(StrEnum):
    """Where a question is asked.

    `ALONE`: in the database of its own dataset. `FEDERATED`: in all of them, one list. `POOLED`: in one database that
    holds the passages of all. `GIVEN`: in databases that were there before.
    """

    ALONE = "alone"
    FEDERATED = "federated"
    POOLED = "pooled"
    GIVEN = "given"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A way of searching.

    `fusion` is a strategy by name, None for what the configuration says or else the default. `reranker` is a provider,
    with a model after a colon if need be; None for what the configuration says, `none` for no reranker.
    """

    search_type: SearchType = "hybrid"
    fusion: str | None = None
    reranker: str | None = None

    @property
    def label(self) -> str:
        """What tables call it, such as `hybrid cosine + local`."""
        reranker = f" + {self.reranker}" if self.reranker not in (None, NO_RERANKER) else ""
        return f"{self.search_type} {self.fusion or 'default'}{reranker}"

    def settled(self, config: AppConfig) -> Variant:
        """The same with what the configuration says put in; an unknown name is a `PluginError`."""
        fusion = self.fusion or config.search.fusion
        if fusion is not None:
            config.kernel.find(FusionRecord.kind, fusion)
        model = reranking_model(config, self.reranker)
        if model is None:
            return replace(self, fusion=fusion, reranker=NO_RERANKER)
        config.kernel.find(RerankerRecord.kind, model.provider)
        return replace(self, fusion=fusion, reranker=self.reranker or model.provider)


def reranking_model(config: AppConfig, reranker: str | None) -> ModelConfig | None:
    """The model that a variant's reranker stands for.

    The provider that is configured keeps its settings, unless another model is named.
    """
    configured = config.reranking.model
    if reranker is None:
        return configured
    if reranker == NO_RERANKER:
        return None
    provider, colon, name = reranker.partition(":")
    if configured is not None and configured.provider == provider:
        return configured.model_copy(update={"name": name} if colon else {})
    return ModelConfig(provider=provider, name=name)


def every_variant(
    search_types: Iterable[SearchType], fusions: Iterable[str], rerankers: Iterable[str]
) -> Sequence[Variant]:
    """Each combination once; what is not given is as configured."""
    combinations = (
        Variant(search_type=search_type, fusion=fusion, reranker=reranker)
        for search_type in search_types
        for fusion in (*fusions,) or (None,)
        for reranker in (*rerankers,) or (None,)
    )
    return list(dict.fromkeys(combinations))
