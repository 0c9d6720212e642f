"""The configuration that a measurement runs under: the user's, without what is about the user's own databases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haiku.rag.config import AppConfig, ModelConfig
from haiku.rag.errors import ConfigError
from haiku.rag.plugins import ConfigSectionRecord, EmbedderRecord, StorageRecord

LANGUAGE_KEY = "fts_language"


def engine_of(config: AppConfig) -> StorageRecord:
    """The storage engine that the databases of a workspace are made with."""
    return config.kernel.default(StorageRecord)


def embedder_name(config: AppConfig) -> str:
    """The embedder that is configured, or the one that needs no configuration."""
    return config.embeddings.model.provider or config.kernel.default(EmbedderRecord).name


def for_measuring(config: AppConfig) -> AppConfig:
    """Without weights, boosts, a threshold, a cap, and databases that may be left out: they are not the ranking's."""
    search = config.search.model_copy(
        update={"weights": {}, "boosts": {}, "min_score": None, "max_per_source": None, "on_unavailable": "raise"}
    )
    return config.model_copy(update={"search": search})


def for_populating(config: AppConfig, *, language: str | None) -> AppConfig:
    """Without hooks, and with full text in a language. `ConfigError` where the engine has no such setting, or word."""
    plain = config.model_copy(update={"hooks": []})
    if language is None:
        return plain
    section = _section_with_language(config)
    if section is None:
        raise ConfigError(f"the storage engine '{engine_of(config).name}' has no language for full text to be set.")
    return with_section(plain, section, {LANGUAGE_KEY: None if language == "none" else language})


def language_setting(config: AppConfig) -> str:
    """The language of full text, as the engine's section has it."""
    section = _section_with_language(config)
    return "" if section is None else str(getattr(config.section(section), LANGUAGE_KEY))


def _section_with_language(config: AppConfig) -> str | None:
    sections = engine_of(config).sections
    return next((name for name in sections if LANGUAGE_KEY in type(config.section(name)).model_fields), None)


def with_reranking(config: AppConfig, model: ModelConfig | None) -> AppConfig:
    """With this reranker, or none."""
    return config.model_copy(update={"reranking": config.reranking.model_copy(update={"model": model})})


def with_section(config: AppConfig, name: str, changes: Mapping[str, Any]) -> AppConfig:
    """A copy in which keys of a plugin's section have other values, checked as those of a file are."""
    model = config.kernel.resolve(ConfigSectionRecord.kind, name)
    given = {**config.section(name).model_dump(), **changes}
    copy = config.model_copy()
    copy._sections = {**config._sections, name: model.model_validate(given)}  # noqa: SLF001 - a copy is otherwise shared
    return copy
