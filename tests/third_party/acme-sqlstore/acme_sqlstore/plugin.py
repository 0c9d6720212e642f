"""What acme-sqlstore registers."""

from collections.abc import Iterable

from haiku.rag.plugins import ConfigSectionRecord, StorageRecord, hookimpl


@hookimpl
def haiku_rag_register_storage() -> Iterable[StorageRecord]:
    """The engine `acme-sql`."""
    yield StorageRecord(
        name="acme-sql",
        summary="SQLite: many databases in a file, one statement for all",
        factory="acme_sqlstore.storage:SqlStorage",
        sections=("acme_sql",),
        schemes=("acme-sql",),
        searches_many=True,
    )


@hookimpl
def haiku_rag_register_config_section() -> Iterable[ConfigSectionRecord]:
    """The section `acme_sql`."""
    yield ConfigSectionRecord(
        name="acme_sql", summary="Databases in SQLite files", factory="haiku.rag.config:StorageSection"
    )
