"""An open handle on a database in memory."""

from __future__ import annotations

from haiku.rag.contracts.storage import DatabaseRef, OpenMode
from haiku.rag.errors import ConfigMismatchError, MissingDatabaseError, ReadOnlyError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.testing.memory_past import MemoryPast
from haiku.rag.testing.memory_server import MemoryServer, MemoryState, now


class MemoryHandle:
    """What the parts of `MemoryDatabase` share: the server's state, visited to read or to write.

    At a tag it is the tag's state as it was when the database was opened.
    """

    def __init__(
        self, server: MemoryServer, ref: DatabaseRef, mode: OpenMode, *, engine: str, retention_seconds: float
    ) -> None:
        self._server = server
        self._ref = ref
        self._mode = mode
        self._engine = engine
        self._retention_seconds = retention_seconds
        self._at_tag = None if ref.tag is None else server.tag(ref, ref.tag).state
        self._is_open = True
        self._embedding = self._state.identity

    @property
    def identity(self) -> EmbeddingIdentity | None:
        """The embedding that it was created for."""
        return self._state.identity

    async def close(self) -> None:
        """Let go of the server."""
        if self._is_open:
            self._is_open = False
            self._server.count_handle(self._ref.location, -1)

    @property
    def _state(self) -> MemoryState:
        state = self._at_tag or self._server.states.get(self._ref.location)
        if state is None:
            raise MissingDatabaseError(f"the database '{self._ref.name}' is gone.")
        return state

    @property
    def _past(self) -> MemoryPast:
        return self._server.pasts[self._ref.location]

    def _committed(self, operation: str) -> None:
        self._past.commit(operation, now())

    async def _visit(self, operation: str) -> MemoryState:
        await self._server.visit(self._ref.location, operation)
        return self._state

    async def _visit_to_write(self, operation: str) -> MemoryState:
        if self._mode is OpenMode.READ:
            raise ReadOnlyError(f"database '{self._ref.name}' is open for reading only.")
        state = await self._visit(operation)
        if state.identity != self._embedding:
            raise ConfigMismatchError(
                f"database '{self._ref.name}' was rebuilt with another embedding since it was opened. Open it again.",
                source=self._ref.name,
            )
        return state
