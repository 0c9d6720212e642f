"""What the options before a command said: the configuration, and which databases it covers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import click

from haiku.rag.cli.output import plugins_speaking
from haiku.rag.errors import AmbiguousDatabaseError, ReadOnlyError
from haiku.rag.plugins.kernel import Kernel

if TYPE_CHECKING:
    from haiku.rag.client import DatabaseScope, HaikuRAG
    from haiku.rag.config import AppConfig


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """The global options. Commands get it with `pass_invocation`; it reads the configuration when it is asked."""

    config_path: str | None = None
    database_name: str | None = None
    read_only: bool = False
    kernel: Kernel | None = None

    @cached_property
    def config(self) -> AppConfig:
        """The configuration, read once."""
        from haiku.rag.config import load_config

        with plugins_speaking():
            return load_config(self.config_path, kernel=self.kernel)

    def covered(self, database_path: str | None = None) -> DatabaseScope:
        """The configured databases, the one of `--db-name`, or the one at the path of `--db`."""
        return self._resolve(database_path, None)

    def one(self, operation: str, database_path: str | None = None, *, tag: str | None = None) -> DatabaseScope:
        """The one database that is meant; `AmbiguousDatabaseError` where several are configured and none is chosen."""
        scope = self._resolve(database_path, None)
        if scope.covers_multiple:
            names = ", ".join(f"'{name}'" for name in scope.names)
            raise AmbiguousDatabaseError(
                f"{operation} needs one database, and several are configured: {names}. "
                "Choose one with --db-name NAME before the command, or --db PATH after it."
            )
        return scope if tag is None else self._resolve(database_path, tag)

    def live(self, operation: str, database_path: str | None = None, *, writes: bool = True) -> DatabaseScope:
        """The one database as it is now, never at a tag, for an operation that changes it unless it only looks."""
        if writes and self.read_only:
            raise ReadOnlyError(f"{operation} writes, and --read-only was given. Leave --read-only out.")
        scope = self.one(operation, database_path)
        scope.live(operation)
        return scope

    def reader(self, scope: DatabaseScope, *, any_embedding: bool = False) -> HaikuRAG:
        """A client that only reads."""
        from haiku.rag.client import HaikuRAG

        return HaikuRAG.over(scope, self.config, read_only=True, any_embedding=any_embedding)

    def searcher(self, scope: DatabaseScope) -> HaikuRAG:
        """A client that reads only when `--read-only` was given: it holds a database to the configured embedding.

        Where the configuration allows others, it reads only.
        """
        from haiku.rag.client import HaikuRAG

        mixed = self.config.search.mixed_embedders == "allow"
        return HaikuRAG.over(scope, self.config, read_only=self.read_only or mixed)

    def writer(
        self,
        operation: str,
        database_path: str | None = None,
        *,
        create: bool = False,
        any_embedding: bool = False,
    ) -> HaikuRAG:
        """A client over the one live database, for writing."""
        from haiku.rag.client import HaikuRAG

        scope = self.live(operation, database_path)
        return HaikuRAG.over(scope, self.config, create=create, any_embedding=any_embedding)

    def _resolve(self, database_path: str | None, tag: str | None) -> DatabaseScope:
        from haiku.rag.client import DatabaseScope

        if database_path is not None and self.database_name is not None:
            raise AmbiguousDatabaseError("--db-name and --db both choose the database. Give one of them.")
        if database_path is not None and not database_path.strip():
            raise ValueError("--db is blank: give the path of a database")
        return DatabaseScope.resolve(
            self.config,
            database_name=self.database_name,
            database_path=database_path,
            tag=tag,
            explicit=True,
        )


pass_invocation = click.make_pass_decorator(Invocation)
"""Hands a command the `Invocation` as its first argument."""
