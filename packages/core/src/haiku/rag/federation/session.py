"""What a client and those borrowed from it share: open databases, engines, embedders and the reranker."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING

import anyio

from haiku.rag.contracts.storage import Database, DatabaseRef, OpenMode, Storage
from haiku.rag.federation.embedders import Embedders
from haiku.rag.federation.identity import check_identity
from haiku.rag.models import EmbeddingIdentity

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig
    from haiku.rag.contracts import Embedder, Reranker
    from haiku.rag.federation.scope import DatabaseScope

logger = logging.getLogger(__name__)
CLOSE_SECONDS = 5.0


class Session:
    """The pool of open databases, by name, and the models that serve them.

    A database opens once, when it is first asked for; a failed open is not remembered. Nothing is opened or built
    by constructing a session. `place` gives each name's place in configured order, by which exact ties are settled.

    With `any_embedding` a database of another embedding than the configured one can be opened for what asks for it so;
    whatever else asks for it is refused as always.
    """

    def __init__(self, config: AppConfig, scope: DatabaseScope, mode: OpenMode, *, any_embedding: bool = False) -> None:
        self.config = config
        self.kernel = config.kernel
        self.scope = scope
        self.mode = mode
        self.any_embedding = any_embedding
        self.place = {name: index for index, name in enumerate(scope.configured)}
        self._is_open = False
        self._databases: dict[str, Database] = {}
        self._locks: dict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._storages: dict[str, Storage] = {}
        self._embedders = Embedders(config)
        self._reranker: Reranker | None = None

    def mode_of(self, ref: DatabaseRef) -> OpenMode:
        """How the database is opened: a tag makes it read-only."""
        return self.mode if ref.tag is None else OpenMode.READ

    def enter(self) -> None:
        """Allow databases to be opened, until `close`."""
        self._is_open = True

    def ensure_open(self) -> None:
        """`RuntimeError` unless the client is entered and not yet closed."""
        if not self._is_open:
            raise RuntimeError("the client is not open: use it inside 'async with HaikuRAG(...) as client:'")

    def opened(self, ref: DatabaseRef) -> Database | None:
        """The database if it is open already, and known to be of the configured embedding."""
        self.ensure_open()
        return None if self.any_embedding else self._databases.get(ref.name)

    async def database(self, ref: DatabaseRef, *, any_embedding: bool = False) -> Database:
        """The open database. Raises what the engine raises; two callers at once open it once."""
        opened = self.opened(ref)
        if opened is not None:
            return opened
        async with self._locks[ref.name]:
            self.ensure_open()
            if ref.name not in self._databases:
                self._databases[ref.name] = await self._open(ref)
            database = self._databases[ref.name]
        if self.any_embedding and not any_embedding:
            self._check(database, await self.configured_identity(), ref)
        return database

    async def _open(self, ref: DatabaseRef) -> Database:
        configured = await self.configured_identity()
        database = await self.storage(ref).open(ref, mode=self.mode_of(ref), identity=configured)
        try:
            if not self.any_embedding:
                self._check(database, configured, ref)
            self.ensure_open()  # the client may have been closed meanwhile
        except BaseException:
            with anyio.CancelScope(shield=True):
                await database.close()
            raise
        return database

    def _check(self, database: Database, configured: EmbeddingIdentity | None, ref: DatabaseRef) -> None:
        writable = self.mode_of(ref) is not OpenMode.READ
        check_identity(database.identity, configured, ref, writable=writable, mixed=self.mixes_embeddings)

    def storage(self, ref: DatabaseRef) -> Storage:
        """The engine of a database, built once."""
        if ref.storage not in self._storages:
            self._storages[ref.storage] = self.kernel.create("storage", ref.storage, self.config)
        return self._storages[ref.storage]

    @property
    def embedder(self) -> Embedder:
        """The configured embedder, or the installed one that needs no configuration. Built once; loads no model."""
        return self._embedders.configured

    @property
    def mixes_embeddings(self) -> bool:
        """Whether each database is searched with the model that it records, and not with the configured one."""
        return self.config.search.mixed_embedders == "allow"

    async def embedder_for(self, database: Database, ref: DatabaseRef) -> Embedder:
        """The embedder of a database's queries; `ConfigMismatchError` where none fits."""
        recorded = database.identity
        if recorded is None or not self.mixes_embeddings:
            return self.embedder
        return await self._embedders.serving(recorded, ref)

    async def configured_identity(self) -> EmbeddingIdentity | None:
        """The configured embedding; None where no embedder is installed, and so nothing can be embedded."""
        return await self._embedders.configured_identity()

    @property
    def reranker(self) -> Reranker | None:
        """The configured reranker, built once; None without one."""
        model = self.config.reranking.model
        if self._reranker is None and model is not None:
            self._reranker = self.kernel.create("reranker", model.provider, self.config)
        return self._reranker

    async def close(self) -> None:
        """Close everything that was opened or built, once, each for at most 5 seconds; a failure is logged."""
        resources: list[Database | Storage | Embedder | Reranker] = [
            *self._databases.values(),
            *self._storages.values(),
            *self._embedders.release(),
            *([] if self._reranker is None else [self._reranker]),
        ]
        self._is_open = False
        self._databases.clear()
        self._storages.clear()
        self._reranker = None
        for resource in resources:
            await close_resource(resource)


async def close_resource(resource: Database | Storage | Embedder | Reranker) -> None:
    """Close it, within a time; a failure is logged."""
    try:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await resource.close()
    except Exception as error:  # noqa: BLE001 - closing the rest matters more
        logger.warning("closing failed: %s of %s", type(error).__name__, type(resource).__name__)
