"""The configuration: one YAML file, or the same in Python with `AppConfig.model_validate`."""

from haiku.rag.config.app import AppConfig
from haiku.rag.config.file import find_config, load_config
from haiku.rag.config.models import EmbeddingModelConfig, ModelConfig
from haiku.rag.config.section import DatabaseEntry, Section, StorageSection

__all__ = [
    "AppConfig",
    "DatabaseEntry",
    "EmbeddingModelConfig",
    "ModelConfig",
    "Section",
    "StorageSection",
    "find_config",
    "load_config",
]
