"""What the options before the command said, as the command line hands it to every command."""

from __future__ import annotations

from typing import cast

import click

from haiku.rag.client import DatabaseScope
from haiku.rag.config import AppConfig, load_config


def configuration() -> AppConfig:
    """The configuration of the command line, or the one that is found where there is no command line around it."""
    config = getattr(click.get_current_context().obj, "config", None)
    return cast("AppConfig", config) if config is not None else load_config()


def database_name() -> str | None:
    """What `--db-name` said before the command."""
    return cast("str | None", getattr(click.get_current_context().obj, "database_name", None))


def scope_of(config: AppConfig, database_path: str | None) -> DatabaseScope:
    """The database of `--db`, that of `--db-name`, or what is configured."""
    return DatabaseScope.resolve(config, database_name=database_name(), database_path=database_path, explicit=True)
