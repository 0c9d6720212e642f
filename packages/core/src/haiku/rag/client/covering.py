"""What a client covers, and its life from entering to closing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from haiku.rag.client.writing import Writer
from haiku.rag.config import AppConfig, load_config
from haiku.rag.contracts.storage import DatabaseRef, OpenMode
from haiku.rag.errors import AmbiguousDatabaseError
from haiku.rag.federation.boundary import attempt_all, failure_to_raise
from haiku.rag.federation.scope import DatabaseScope
from haiku.rag.federation.session import Session


class CoveringClient:
    """The part of a client that says which databases it covers, and opens, lends and closes them."""

    _empty = False

    def __init__(
        self,
        db_path: Path | str | None = None,
        config: AppConfig | None = None,
        *,
        create: bool = False,
        read_only: bool = False,
        sources: Sequence[str] | None = None,
        tag: str | None = None,
        any_embedding: bool = False,
    ) -> None:
        if db_path is not None and sources is not None:
            raise AmbiguousDatabaseError("a database path and sources were both given. Give one of them.")
        if create and (read_only or tag is not None):
            raise ValueError(
                "create=True makes a database that can be written; it goes with neither read_only nor a tag"
            )
        chosen = config or load_config()
        scope = DatabaseScope.resolve(chosen, database_path=db_path)
        self._empty = sources is not None and not list(sources)
        covered = scope if sources is None or self._empty else scope.select(sources)
        if tag is not None:
            covered = covered.at_tag(tag)
        if create:
            covered.live("creating a database")
        mode = _mode(create=create, read_only=read_only)
        self._set_up(Session(chosen, covered, mode, any_embedding=any_embedding), covered)

    def _set_up(self, session: Session, scope: DatabaseScope, *, lent: bool = False) -> None:
        self._session = session
        self._scope = scope
        self._lent = lent
        self._lifespans = AsyncExitStack()

    @classmethod
    def over(
        cls,
        scope: DatabaseScope,
        config: AppConfig,
        *,
        create: bool = False,
        read_only: bool = False,
        any_embedding: bool = False,
    ) -> Self:
        """A client over a scope that was resolved before. Opens nothing."""
        client = cls.__new__(cls)
        mode = _mode(create=create, read_only=read_only)
        client._set_up(Session(config, scope, mode, any_embedding=any_embedding), scope)
        return client

    async def __aenter__(self) -> Self:
        if self._lent:
            return self
        if self._empty:
            raise ValueError("sources=[] leaves no database to cover; leave sources out to cover them all")
        self._session.enter()
        try:
            if not self.covers_multiple:
                any_embedding = self._session.any_embedding
                await Writer(self._session, self._scope.databases[0], any_embedding=any_embedding).opened()
            for lifespan in self._session.kernel.lifespans(self):
                await self._lifespans.enter_async_context(lifespan)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close what was opened. Safe before entering and twice; on a borrowed client it does nothing."""
        if self._lent:
            return
        with anyio.CancelScope(shield=True):
            try:
                await self._lifespans.aclose()
            finally:
                await self._session.close()

    @property
    def config(self) -> AppConfig:
        """The configuration."""
        return self._session.config

    @property
    def covers_multiple(self) -> bool:
        """Whether more than one database is covered."""
        return self._scope.covers_multiple

    @property
    def source_names(self) -> tuple[str, ...]:
        """The covered databases' names, in order; known before entering."""
        return self._scope.names

    @property
    def source(self) -> str | None:
        """The one database's name; None over a set."""
        return None if self.covers_multiple else self._scope.names[0]

    @property
    def is_read_only(self) -> bool:
        """Whether some covered database is open for reading only."""
        return any(self._session.mode_of(ref) is OpenMode.READ for ref in self._scope.databases)

    async def reader_for(self, name: str) -> Self:
        """A borrowed client over one covered database, opened now; valid while this client is open."""
        return (await self.clients_for([name]))[0]

    async def clients_for(self, names: Sequence[str]) -> list[Self]:
        """Borrowed clients over the named databases, in the order given, repeats collapsing."""
        refs = self._scope.chosen(names)
        self._session.ensure_open()
        timeout_s = self.config.search.timeout_s
        outcomes = await attempt_all(self._session.kernel, refs, self._session.database, timeout_s=timeout_s)
        error = failure_to_raise(outcomes, "raise")
        if error is not None:
            raise error
        return [self._borrowed(ref) for ref in refs]

    async def clients_covering(self, sources: Sequence[str] | None = None) -> list[Self]:
        """Borrowed clients over the selection: all for None, none for `[]`."""
        return await self.clients_for(self.source_names if sources is None else sources)

    def _borrowed(self, ref: DatabaseRef) -> Self:
        client = type(self).__new__(type(self))
        client._set_up(self._session, DatabaseScope((ref,)), lent=True)
        return client


def _mode(*, create: bool, read_only: bool) -> OpenMode:
    return OpenMode.CREATE if create else OpenMode.READ if read_only else OpenMode.WRITE
