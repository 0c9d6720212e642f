"""The kernel: what is installed, which provider a name means, and the calls to hooks."""

import inspect
import logging
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, cast

from haiku.rag.errors import (
    HaikuRagError,
    MissingDependencyError,
    PluginConflictError,
    PluginError,
    PluginNotLoadedError,
    UnknownPluginError,
)
from haiku.rag.plugins import messages
from haiku.rag.plugins.catalogue import extra_for, extras, normalized
from haiku.rag.plugins.faults import checked, plugin_error
from haiku.rag.plugins.loading import (
    DISABLE_VARIABLE,
    NO_PLUGINS_VARIABLE,
    Plugin,
    factory_object,
    load_plugins,
    new_manager,
)
from haiku.rag.plugins.records import ErrorRecord, PluginRecord

logger = logging.getLogger(__name__)
Record = TypeVar("Record", bound=PluginRecord)

FAILURES = (Exception, SystemExit)
"""What the plugin boundary stops: anything that a plugin does wrong, ending the process included."""


@dataclass(frozen=True, kw_only=True)
class Provided:
    """A record and the plugin that provides it."""

    record: PluginRecord
    plugin: Plugin


class Kernel:
    """The plugins of one configuration.

    `prefer` names the plugins or distributions that win where two provide one name.
    """

    def __init__(self, plugins: Iterable[Plugin], *, prefer: Iterable[str] = ()) -> None:
        self.plugins = tuple(plugins)
        self._prefer = {normalized(name) for name in prefer}
        self._manager = new_manager()
        self._by_target: dict[int, Plugin] = {}
        self._provided: dict[tuple[str, str], list[Provided]] = defaultdict(list)
        for plugin in self.plugins:
            if plugin.status == "loaded":
                self._add(plugin)

    def _add(self, plugin: Plugin) -> None:
        if self._manager.register(plugin.target) is None:  # pragma: no cover - pluggy blocks nothing by itself
            return
        self._by_target[id(plugin.target)] = plugin
        for record in plugin.records:
            self._provided[record.kind, record.name].append(Provided(record=record, plugin=plugin))

    def provided(self, kind: str) -> list[Provided]:
        """Everything of a kind, conflicts included, sorted by name."""
        entries = [entry for key, group in self._provided.items() if key[0] == kind for entry in group]
        return sorted(entries, key=lambda entry: (entry.record.name, entry.plugin.name))

    def records(self, record_type: type[Record]) -> list[Record]:
        """The records of a kind that can be used: one a name, conflicts settled or left out."""
        names = sorted(name for kind, name in self._provided if kind == record_type.kind)
        settled = [self._settle(self._provided[record_type.kind, name]) for name in names]
        return [cast("Record", entry.record) for entry in settled if entry is not None]

    def conflicts(self) -> list[str]:
        """One sentence for each name that two plugins provide and no preference settles."""
        return [
            messages.conflict(kind, name, [entry.plugin.provider for entry in group])
            for (kind, name), group in sorted(self._provided.items())
            if self._settle(group) is None
        ]

    def find(self, kind: str, name: str) -> Provided:
        """The provider of a name; `PluginError` where there is none, several, or one that could not be loaded."""
        group = self._provided.get((kind, name), [])
        if not group:
            raise self._not_found(kind, name)
        chosen = self._settle(group)
        if chosen is None:
            raise PluginConflictError(messages.conflict(kind, name, [entry.plugin.provider for entry in group]))
        return chosen

    def default(self, record_type: type[Record]) -> Record:
        """The one installed record of a kind that works without configuration."""
        standalone = [record for record in self.records(record_type) if getattr(record, "standalone", False)]
        kind = record_type.kind
        if len(standalone) == 1:
            return standalone[0]
        if standalone:
            names = ", ".join(f"'{record.name}'" for record in standalone)
            raise PluginConflictError(f"several installed plugins can serve as the {kind}: {names}. Name one.")
        raise UnknownPluginError(
            f"no {kind} is configured and none that works without configuration is installed. "
            f"Install the default set with: {messages.install_line('default')}."
        )

    def choose(self, candidates: Sequence[Record], purpose: str) -> Record:
        """The one of several records that serves a purpose; `PluginConflictError` names all unless one is preferred."""
        provided = [self.find(record.kind, record.name) for record in candidates]
        chosen = self._settle(provided)
        if chosen is None:
            raise PluginConflictError(messages.rivals(purpose, [entry.plugin.provider for entry in provided]))
        return cast("Record", chosen.record)

    def resolve(self, kind: str, name: str) -> Any:
        """The object that a record's factory names, imported now."""
        record = self.find(kind, name).record
        try:
            return factory_object(record.factory)
        except ModuleNotFoundError as error:
            needs = record.needs or error.name or "a library"
            text = messages.missing_dependency(kind, name, needs, record.extra)
        except FAILURES as error:
            text = f"{kind} '{name}' could not be loaded: {type(error).__name__}: {error}."
            raise PluginNotLoadedError(text) from None
        raise MissingDependencyError(text)

    def create(self, kind: str, name: str, config: object) -> Any:
        """What the record's factory makes of the configuration."""
        factory = self.resolve(kind, name)
        try:
            return factory(config)
        except HaikuRagError:
            raise
        except FAILURES as error:
            plugin = self.find(kind, name).plugin
            # An engine may say where a database is.
            raise plugin_error(plugin, f"making the {kind} '{name}'", error, words=kind != "storage") from None

    def error_record(self, error_type: type[BaseException]) -> ErrorRecord | None:
        """The record of an error type, or of the nearest registered one that it derives from."""
        registered = {_imported(record): record for record in self.records(ErrorRecord)}
        return next((registered[parent] for parent in error_type.__mro__ if parent in registered), None)

    def decide(self, hook: str, *, expects: type = object, **arguments: object) -> Any:
        """The first answer that is not None, core's own last. A plugin's failure, or wrong answer, names the plugin."""
        for plugin, function, names in self._implementations(hook):
            try:
                answer = function(**{name: arguments[name] for name in names})
            except HaikuRagError:
                raise
            except FAILURES as error:
                raise plugin_error(plugin, hook, error, words=False) from None
            if answer is not None:
                return checked(plugin, hook, answer, expects)
        return None

    async def observe(self, hook: str, **arguments: object) -> None:
        """Tell every plugin; a failure is logged and changes nothing."""
        for plugin, function, names in self._implementations(hook):
            try:
                await maybe_await(function(**{name: arguments[name] for name in names}))
            except FAILURES as error:
                logger.warning("plugin '%s' failed in %s: %s", plugin.name, hook, type(error).__name__)

    async def transform(self, hook: str, entries: Iterable[Any], subject: str, **arguments: Any) -> Any:
        """Pass `arguments[subject]` through the listed plugins, in the order of the list.

        `entries` have a `name` and `options`. A name that is not loaded is a `PluginError`. A `HaikuRagError` that a
        plugin raises reaches the caller; any other failure is a `PluginError` that names the plugin.
        """
        implementations = {entry[0].name: entry for entry in self._implementations(hook)}
        for entry in entries:
            self.require(entry.name)
            if entry.name not in implementations:
                continue
            plugin, function, names = implementations[entry.name]
            given = {**arguments, "options": entry.options}
            try:
                answer = await maybe_await(function(**{name: given[name] for name in names}))
            except HaikuRagError:
                raise
            except FAILURES as error:
                raise plugin_error(plugin, hook, error) from None
            if answer is not None:
                arguments[subject] = checked(plugin, hook, answer, type(arguments[subject]))
        return arguments[subject]

    def lifespans(self, client: object) -> Iterator[Any]:
        """The context managers that plugins want to be held while a client is open."""
        hook = "haiku_rag_lifespan"
        for plugin, function, names in self._implementations(hook):
            try:
                manager = function(**dict.fromkeys(names, client))
            except FAILURES as error:
                raise plugin_error(plugin, hook, error) from None
            if manager is not None:
                yield checked(plugin, hook, manager, AbstractAsyncContextManager)

    def require(self, name: str) -> Plugin:
        """The loaded plugin of a name, else a `PluginError` that says what became of it."""
        matching = [plugin for plugin in self.plugins if plugin.name == name]
        loaded = [plugin for plugin in matching if plugin.status == "loaded"]
        if loaded:
            return loaded[0]
        if matching:
            raise PluginNotLoadedError(not_loaded(matching[0]))
        raise UnknownPluginError(messages.unknown("plugin", name, [plugin.name for plugin in self.plugins]))

    def knows_section(self, name: str) -> bool:
        """Whether a section belongs to something that is not loaded but known: an extra, or a plugin switched off."""
        off = {plugin.name for plugin in self.plugins if plugin.status != "loaded"}
        return name in off or name.replace("_", "-") in extras()

    def _implementations(self, hook: str) -> list[tuple[Plugin, Callable[..., Any], tuple[str, ...]]]:
        found = reversed(getattr(self._manager.hook, hook).get_hookimpls())
        return [(self._by_target[id(impl.plugin)], impl.function, impl.argnames) for impl in found]

    def _settle(self, group: list[Provided]) -> Provided | None:
        preferred = [
            entry
            for entry in group
            if {normalized(entry.plugin.name), normalized(entry.plugin.distribution)} & self._prefer
        ]
        candidates = preferred or group
        return candidates[0] if len(candidates) == 1 else None

    def _not_found(self, kind: str, name: str) -> PluginError:
        known = [record_name for record_kind, record_name in self._provided if record_kind == kind]
        text = messages.unknown(kind, name, known, extra=extra_for(kind, name))
        off = [plugin for plugin in self.plugins if plugin.status != "loaded"]
        related = [plugin for plugin in off if name in (plugin.name, plugin.distribution)] or [
            plugin for plugin in off if plugin.status == "failed"
        ]
        if not related:
            return UnknownPluginError(text)
        return PluginNotLoadedError(
            " ".join([text, *(not_loaded(plugin)[:1].upper() + not_loaded(plugin)[1:] for plugin in related)])
        )


def _imported(record: PluginRecord) -> object:
    """What a record's factory names; None where its module is not imported, so that nothing of it can be about."""
    module, _, attribute = record.factory.partition(":")
    return getattr(sys.modules.get(module), attribute, None)


def not_loaded(plugin: Plugin) -> str:
    """The sentence on a plugin that is switched off."""
    return messages.not_loaded(plugin.name, plugin.distribution, plugin.version, plugin.reason)


async def maybe_await(value: Any) -> Any:
    """The value, awaited where it can be."""
    return await value if inspect.isawaitable(value) else value


def load_kernel(*, disabled: Iterable[str] = (), prefer: Iterable[str] = (), third_party: bool | None = None) -> Kernel:
    """The kernel for these settings; the same settings get the same one.

    `third_party=None` asks the variable `HAIKU_RAG_NO_PLUGINS`, which the command line's `--no-plugins` sets.
    """
    strangers = os.environ.get(NO_PLUGINS_VARIABLE, "") in ("", "0") if third_party is None else third_party
    variable = os.environ.get(DISABLE_VARIABLE, "")
    return _cached_kernel(tuple(disabled), tuple(prefer), third_party=strangers, variable=variable)


@lru_cache(maxsize=8)
def _cached_kernel(
    disabled: tuple[str, ...],
    prefer: tuple[str, ...],
    *,
    third_party: bool,
    variable: str,  # noqa: ARG001 - part of the cache's key: the loader reads the environment itself
) -> Kernel:
    return Kernel(load_plugins(disabled=disabled, third_party=third_party), prefer=prefer)
