"""Fetching the models that the configuration names, before they are needed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from haiku.rag.contracts.downloads import Downloading, DownloadStep
from haiku.rag.errors import HaikuRagError
from haiku.rag.federation.session import close_resource
from haiku.rag.plugins import EmbedderRecord
from haiku.rag.plugins.kernel import FAILURES

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig


class ModelDownload(BaseModel):
    """How it stands with one configured model.

    `kind` says what the model is for, such as `embedder`; `provider` and `model` are as configured. While the outcome
    is `running`, `done` of `total` bytes of `part` are there. The last word on each model is another outcome:
    `fetched`, with all the bytes in `done`; `present`, where nothing was missing; `not_needed`, where the provider
    downloads nothing; or `failed`, with a sentence in `reason`.
    """

    kind: str
    provider: str
    model: str = ""
    outcome: Literal["running", "fetched", "present", "not_needed", "failed"] = "running"
    part: str = ""
    done: int = 0
    total: int | None = None
    reason: str = ""


async def download_models(config: AppConfig) -> AsyncGenerator[ModelDownload, None]:
    """Fetch each model that the configuration names, step by step, for a progress bar. Opens no database.

    A model that cannot be had is a step and no exception, and does not stop the next. Close it (`contextlib.aclosing`)
    to break off at once; called again it goes on.
    """
    for its_config, named in _named(config):
        async with aclosing(_steps(its_config, named)) as steps:
            async for step in steps:
                yield step


def _named(config: AppConfig) -> Iterator[tuple[AppConfig, ModelDownload]]:
    """What the configuration names, or what serves without being named, each with the configuration to make it of."""
    embeddings = config.embeddings
    others = embeddings.others if config.search.mixed_embedders == "allow" else []
    for settings in (embeddings.model, *others):
        provider = settings.provider or _unnamed_embedder(config)
        if provider is not None:
            its_embeddings = embeddings.model_copy(update={"model": settings})
            its_config = config.model_copy(update={"embeddings": its_embeddings})
            yield its_config, ModelDownload(kind="embedder", provider=provider, model=settings.name)
    reranking = config.reranking.model
    if reranking is not None:
        yield config, ModelDownload(kind="reranker", provider=reranking.provider, model=reranking.name)


def _unnamed_embedder(config: AppConfig) -> str | None:
    """The one installed embedder that needs no configuration."""
    standalone = [record.name for record in config.kernel.records(EmbedderRecord) if record.standalone]
    return standalone[0] if len(standalone) == 1 else None


async def _steps(config: AppConfig, named: ModelDownload) -> AsyncGenerator[ModelDownload, None]:
    """The steps of one model: those that its provider reports, and then what came of it."""
    parts: dict[str, int] = {}
    try:
        async with _made(config, named) as model:
            if not isinstance(model, Downloading):
                yield named.model_copy(update={"outcome": "not_needed"})
                return
            async with aclosing(model.downloads()) as steps:
                async for given in steps:
                    step = DownloadStep.model_validate(given, strict=True)
                    parts[step.name] = step.done
                    yield named.model_copy(update={"part": step.name, "done": step.done, "total": step.total})
        done = sum(parts.values())
        update = {"outcome": "fetched" if parts else "present", "done": done, "total": done}
    except HaikuRagError as error:
        update = {"outcome": "failed", "reason": str(error)}
    except FAILURES as error:  # its text may hold an address or a key
        update = {"outcome": "failed", "reason": f"{named.kind} '{named.provider}' failed: {type(error).__name__}."}
    yield named.model_copy(update=update)


@asynccontextmanager
async def _made(config: AppConfig, named: ModelDownload) -> AsyncIterator[Any]:
    """The embedder or reranker, made for the occasion."""
    model = config.kernel.create(named.kind, named.provider, config)
    try:
        yield model
    finally:
        await close_resource(model)
