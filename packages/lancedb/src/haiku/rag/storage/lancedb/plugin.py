"""What the package registers."""

from collections.abc import Iterator

from haiku.rag.plugins import ConfigSectionRecord, StorageRecord, hookimpl


@hookimpl
def haiku_rag_register_storage() -> Iterator[StorageRecord]:
    """The LanceDB engine."""
    yield StorageRecord(
        name="lancedb",
        summary="Embedded databases in a local folder or on object storage.",
        factory="haiku.rag.storage.lancedb.storage:create_storage",
        extra="lancedb",
        needs="lancedb",
        sections=("lancedb",),
        schemes=("s3", "gs", "az", "db"),
        suffixes=(".lancedb",),
        default_location="haiku.rag.lancedb",
        standalone=True,
        capabilities=frozenset({"checks", "rebuild", "history", "migrations", "tags", "upkeep"}),
    )


@hookimpl
def haiku_rag_register_config_section() -> Iterator[ConfigSectionRecord]:
    """The `lancedb` section."""
    yield ConfigSectionRecord(
        name="lancedb",
        summary="Where LanceDB databases are and how they are reached.",
        factory="haiku.rag.storage.lancedb.settings:LanceDBSettings",
        secrets=("api_key", "storage_options"),
    )
