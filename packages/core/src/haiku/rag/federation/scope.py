"""Which databases a client covers, decided without opening any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from haiku.rag.config.models import absolute, expanded
from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.errors import (
    AmbiguousDatabaseError,
    ConfigError,
    TagError,
    UnknownDatabaseError,
    UnknownPluginError,
)
from haiku.rag.plugins import StorageRecord
from haiku.rag.plugins.messages import install_line, suggestion

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig, DatabaseEntry

DEFAULT_NAME = "haiku.rag"


@dataclass(frozen=True, kw_only=True)
class ScopeSelector:
    """What a caller said about which databases: one by name, one by path, or neither; and the tag to read at.

    `explicit` says that a path overrides the configuration (the command line's `--db`) instead of contradicting it.
    """

    database_name: str | None = None
    database_path: Path | str | None = None
    tag: str | None = None
    explicit: bool = False


@dataclass(frozen=True)
class DatabaseScope:
    """The databases that are covered, in order; never none.

    `configured` keeps the names in configured order, by which exact ties are settled, also when the scope is narrowed.
    """

    databases: tuple[DatabaseRef, ...]
    configured: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.databases:
            raise ValueError("a scope covers at least one database")
        if not self.configured:
            object.__setattr__(self, "configured", self.names)

    @classmethod
    def resolve(
        cls,
        config: AppConfig,
        *,
        database_name: str | None = None,
        database_path: Path | str | None = None,
        tag: str | None = None,
        explicit: bool = False,
    ) -> DatabaseScope:
        """What the configuration covers, or the one database that is named or given by path. Opens nothing.

        `AmbiguousDatabaseError` for two selectors at once, and for a path beside configured databases unless
        `explicit`; `UnknownDatabaseError` for a name that is not configured.
        """
        selector = ScopeSelector(database_name=database_name, database_path=database_path, tag=tag, explicit=explicit)
        scope: DatabaseScope = config.kernel.decide(
            "haiku_rag_resolve_scope", expects=DatabaseScope, config=config, selector=selector
        )
        return scope

    @property
    def names(self) -> tuple[str, ...]:
        """The covered names, in order."""
        return tuple(ref.name for ref in self.databases)

    @property
    def covers_multiple(self) -> bool:
        """Whether there is more than one."""
        return len(self.databases) > 1

    def chosen(self, names: Sequence[str] | None) -> tuple[DatabaseRef, ...]:
        """The named databases in the order given, repeats collapsing; all for None, none for an empty sequence."""
        if names is None:
            return self.databases
        if isinstance(names, str):
            raise TypeError(f"sources takes a list of names, not the text {names!r}")
        by_name = {ref.name: ref for ref in self.databases}
        unknown = [name for name in names if name not in by_name]
        if unknown:
            raise unknown_database(unknown[0], self.names)
        return tuple(by_name[name] for name in dict.fromkeys(names))

    def select(self, names: Sequence[str]) -> Self:
        """The scope narrowed to the named databases; `ValueError` for none of them."""
        refs = self.chosen(names)
        if not refs:
            raise ValueError("sources=[] leaves no database to cover; leave sources out to cover them all")
        return replace(self, databases=refs)

    def single(self, operation: str) -> DatabaseRef:
        """The one database, or `AmbiguousDatabaseError` naming the operation and what is covered."""
        if self.covers_multiple:
            raise AmbiguousDatabaseError(
                f"{operation} needs one database, and several are covered: {quoted(self.names)}. Choose one of them."
            )
        return self.databases[0]

    def at_tag(self, tag: str) -> Self:
        """The one database as it was at the tag; `AmbiguousDatabaseError` where it is read at one already."""
        ref = self.single(f"reading at the tag '{tag}'")
        if not tag.strip():
            raise TagError("the tag is blank: name one, or leave it out.", source=ref.name)
        if ref.tag is not None:
            raise AmbiguousDatabaseError(f"'{ref.name}' is already read at the tag '{ref.tag}'; it takes no other.")
        return replace(self, databases=(replace(ref, tag=tag),))

    def live(self, operation: str) -> DatabaseRef:
        """The one database, which must not be read at a tag."""
        ref = self.single(operation)
        if ref.tag is not None:
            raise TagError(
                f"{operation} works on the live database, and '{ref.name}' is read at the tag '{ref.tag}'.",
                source=ref.name,
            )
        return ref


def quoted(names: Sequence[str]) -> str:
    """Names for a message: `'a', 'b'`."""
    return ", ".join(f"'{name}'" for name in names)


def unknown_database(name: str, covered: Sequence[str]) -> UnknownDatabaseError:
    """The error for a name that is not covered."""
    return UnknownDatabaseError(
        f"no database '{name}' is covered. Covered: {quoted(covered)}.{suggestion(str(name), covered)}"
    )


def resolve_scope(config: AppConfig, selector: ScopeSelector) -> DatabaseScope:
    """Core's own answer to `haiku_rag_resolve_scope`: the configuration's databases, in configured order."""
    configured = _configured(config)
    if selector.database_name is not None and selector.database_path is not None:
        raise AmbiguousDatabaseError("a database name and a database path were both given. Give one of them.")
    if selector.database_path is not None:
        if configured and not selector.explicit:
            raise AmbiguousDatabaseError(
                f"a database path was given, and the configuration places {quoted([r.name for r in configured])}. "
                "Use sources= to choose among them, or a configuration without databases."
            )
        scope = DatabaseScope((_at_path(config, selector),))
        return scope if selector.tag is None else scope.at_tag(selector.tag)
    scope = DatabaseScope(tuple(configured) or (_default(config),))
    _refuse_unknown_names(config, scope)
    if selector.database_name is not None:
        scope = DatabaseScope(scope.chosen([selector.database_name]))
    return scope if selector.tag is None else scope.at_tag(selector.tag)


def _refuse_unknown_names(config: AppConfig, scope: DatabaseScope) -> None:
    """A misspelt name would otherwise weigh, lift or demand nothing, unseen."""
    search = config.search
    required = [] if isinstance(search.on_unavailable, str) else search.on_unavailable
    for name in (*search.weights, *search.boosts, *required):
        scope.chosen([name])


def _configured(config: AppConfig) -> list[DatabaseRef]:
    _refuse_databases_without_engine(config)
    refs: dict[str, DatabaseRef] = {}
    for section in config.section_names:
        engines = [record for record in config.kernel.records(StorageRecord) if section in record.sections]
        if not engines:
            continue
        engine = config.kernel.choose(engines, f"the section '{section}'")
        for name, entry in config.section(section).databases.items():
            if name in refs:
                raise ConfigError(f"{section}.databases.{name}: another storage section has a database of this name.")
            refs[name] = _configured_ref(config, name, entry, engine)
    return list(refs.values())


def _refuse_databases_without_engine(config: AppConfig) -> None:
    """A section that places databases must not be passed over because its engine is not installed."""
    for section, value in config.inert_sections.items():
        placed = value.get("databases") if isinstance(value, dict) else None
        entries = placed.values() if isinstance(placed, dict) else ()
        if any(isinstance(entry, str) or (isinstance(entry, dict) and "location" in entry) for entry in entries):
            raise UnknownPluginError(
                f"the configuration places databases under '{section}', and no storage engine that reads it is loaded. "
                f"Install it with: {install_line(section.replace('_', '-'))}."
            )


def _configured_ref(config: AppConfig, name: str, entry: DatabaseEntry, engine: StorageRecord) -> DatabaseRef:
    location = entry.location if "://" in entry.location else str(config.resolve_path(entry.location))
    return DatabaseRef(
        name=name, location=location, storage=engine.name, searches_many=engine.searches_many, tag=entry.tag
    )


def _default(config: AppConfig) -> DatabaseRef:
    record = config.kernel.default(StorageRecord)
    location = str(config.resolve_path(str(config.storage.data_dir)) / record.default_location)
    return DatabaseRef(name=DEFAULT_NAME, location=location, storage=record.name)


def _at_path(config: AppConfig, selector: ScopeSelector) -> DatabaseRef:
    text = str(selector.database_path)
    if not text.strip() or "\0" in text:
        raise ConfigError("the database path is blank or holds a NUL character.")
    if "://" in text:
        raise ConfigError("a database path is a local one. Place a database with a URI by name, under 'databases'.")
    path = expanded(text)
    if not path.stem:
        raise ConfigError(f"the database path '{text}' has no name to call the database by.")
    records = config.kernel.records(StorageRecord)
    matching = [record for record in records if path.suffix in record.suffixes]
    purpose = f"databases named '*{path.suffix}'"
    record = config.kernel.choose(matching, purpose) if matching else config.kernel.default(StorageRecord)
    return DatabaseRef(name=path.stem, location=str(absolute(path)), storage=record.name, given=True)
