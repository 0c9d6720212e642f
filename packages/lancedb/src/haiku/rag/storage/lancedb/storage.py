"""The LanceDB storage engine."""

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from haiku.rag.config import AppConfig
from haiku.rag.config.models import StorageConfig
from haiku.rag.contracts import DatabaseRef, OpenMode
from haiku.rag.contracts.maintenance import Migration
from haiku.rag.errors import TagError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb.budget import MemoryBudget
from haiku.rag.storage.lancedb.compaction import bound_memory
from haiku.rag.storage.lancedb.failures import reported
from haiku.rag.storage.lancedb.location import check_folder, make_folder
from haiku.rag.storage.lancedb.maintained import MaintainedDatabase
from haiku.rag.storage.lancedb.migrations.steps import migrate, pending
from haiku.rag.storage.lancedb.schema import SETTINGS
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.tables import create_tables, is_there, open_tables

Migrating = Callable[[Any, DatabaseRef], Awaitable[Sequence[Migration]]]
INDEX_CACHE_BYTES = 1 << 30
METADATA_CACHE_BYTES = 256 << 20


class LanceDBStorage:
    """Implements `haiku.rag.contracts.Storage`. The databases it opens share one bounded cache."""

    def __init__(self, settings: LanceDBSettings, storage: StorageConfig | None = None) -> None:
        self._settings = settings
        self._storage = storage or StorageConfig()
        self._session: Any = None
        self._budget = MemoryBudget(settings.vector_memory_mb << 20)

    async def open(self, ref: DatabaseRef, *, mode: OpenMode, identity: EmbeddingIdentity | None) -> MaintainedDatabase:
        """Open the database at `ref`; only `CREATE` makes one, and connecting never does."""
        if mode is not OpenMode.READ:
            _refuse_tag(ref)
        await anyio.to_thread.run_sync(check_folder, ref, mode)
        return await reported(ref, "opened", lambda: self._open(ref, mode, identity))

    async def close(self) -> None:
        """Let go of the shared cache."""
        self._session = None

    async def pending_migrations(self, ref: DatabaseRef) -> Sequence[Migration]:
        """The steps that a database lacks; reads only."""
        return await self._migrating(ref, "read", pending)

    async def migrate(self, ref: DatabaseRef) -> Sequence[Migration]:
        """Take them; gives the steps taken."""
        _refuse_tag(ref)
        return await self._migrating(ref, "migrated", migrate)

    async def _migrating(self, ref: DatabaseRef, action: str, operation: Migrating) -> Sequence[Migration]:
        await anyio.to_thread.run_sync(check_folder, ref, OpenMode.WRITE)

        async def connected() -> Sequence[Migration]:
            connection = await self._connect(ref)
            try:
                return await operation(connection, ref)
            finally:
                connection.close()

        return await reported(ref, action, connected)

    async def _open(self, ref: DatabaseRef, mode: OpenMode, identity: EmbeddingIdentity | None) -> MaintainedDatabase:
        connection = await self._connect(ref)
        try:
            if mode is OpenMode.CREATE and not await is_there(connection, SETTINGS):
                if ref.path is not None:
                    await anyio.to_thread.run_sync(make_folder, ref.path)
                await create_tables(connection, ref, identity, language=self._settings.language_of(ref.name))
            tables = await open_tables(connection, ref)
        except BaseException:
            connection.close()
            raise
        return MaintainedDatabase(
            connection,
            ref,
            tables,
            interval=self._settings.read_consistency_interval_seconds,
            budget=self._budget,
            writable=mode is not OpenMode.READ,
            storage=self._storage,
            language=self._settings.language_of(ref.name),
        )

    async def _connect(self, ref: DatabaseRef) -> Any:
        lancedb = await anyio.to_thread.run_sync(_load, self._storage.compaction_target_bytes)
        if self._session is None:
            self._session = lancedb.Session(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES)
        options: dict[str, Any] = {"session": self._session}
        if ref.path is None:
            secrets = self._settings.storage_options
            options["storage_options"] = {key: value.get_secret_value() for key, value in secrets.items()}
        if ref.location.startswith("db://"):
            options |= self._cloud_options()
        return await lancedb.connect_async(ref.location, **options)

    def _cloud_options(self) -> dict[str, str]:
        options = {}
        if self._settings.api_key is not None:
            options["api_key"] = self._settings.api_key.get_secret_value()
        if self._settings.region is not None:
            options["region"] = self._settings.region
        return options


def _refuse_tag(ref: DatabaseRef) -> None:
    if ref.tag is not None:
        raise TagError(
            f"database '{ref.name}' is placed at tag '{ref.tag}' and can only be read. Place it without the tag.",
            source=ref.name,
        )


def _load(target_bytes: int) -> Any:
    # Importing takes about two seconds: in a worker thread, and only when a database is opened. The engine's own log
    # goes to stderr and names locations; it reads this variable once, and what a user has set counts.
    os.environ.setdefault("LANCEDB_LOG", "error")
    bound_memory(target_bytes)
    import lancedb

    return lancedb


def create_storage(config: AppConfig) -> LanceDBStorage:
    """The factory that the plugin's record names."""
    settings = config.section("lancedb")
    assert isinstance(settings, LanceDBSettings)
    return LanceDBStorage(settings, config.storage)
