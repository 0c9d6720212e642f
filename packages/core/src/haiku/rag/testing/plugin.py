"""The testing plugin: storage in memory, and everything else that a client needs."""

from collections.abc import Iterable

from haiku.rag.plugins import ConfigSectionRecord, StorageRecord, hookimpl
from haiku.rag.testing.plugin_without_storage import (
    haiku_rag_register_chunker,
    haiku_rag_register_converter,
    haiku_rag_register_embedder,
    haiku_rag_register_reranker,
)

__all__ = [
    "haiku_rag_register_chunker",
    "haiku_rag_register_config_section",
    "haiku_rag_register_converter",
    "haiku_rag_register_embedder",
    "haiku_rag_register_reranker",
    "haiku_rag_register_storage",
]


@hookimpl
def haiku_rag_register_storage() -> Iterable[StorageRecord]:
    """The engine `memory`, and the same as one that searches many databases at once."""
    yield StorageRecord(
        name="memory",
        summary="In memory, one call a database",
        factory="haiku.rag.testing.memory:MemoryStorage",
        sections=("memory",),
        schemes=("memory",),
        suffixes=(".memory",),
        default_location="haiku.rag.memory",
        standalone=True,
        capabilities=frozenset({"checks", "history", "migrations", "rebuild", "tags", "upkeep"}),
    )
    yield StorageRecord(
        name="memory-many",
        summary="In memory, one call for all databases",
        factory="haiku.rag.testing.memory:ManyMemoryStorage",
        sections=("memory_many",),
        searches_many=True,
    )


@hookimpl
def haiku_rag_register_config_section() -> Iterable[ConfigSectionRecord]:
    """The sections `memory` and `memory_many`."""
    for name in ("memory", "memory_many"):
        yield ConfigSectionRecord(
            name=name, summary="Databases in memory", factory="haiku.rag.testing.memory:MemorySection"
        )
