"""The kernel's own loading loop: one plugin that is at fault costs that plugin only."""

import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

import pluggy

from haiku.rag.plugins import hookspecs
from haiku.rag.plugins.catalogue import is_first_party, normalized
from haiku.rag.plugins.marks import PROJECT
from haiku.rag.plugins.messages import suggestion
from haiku.rag.plugins.records import RECORD_TYPES, PluginRecord

DISABLE_VARIABLE = "HAIKU_RAG_DISABLE_PLUGINS"
NO_PLUGINS_VARIABLE = "HAIKU_RAG_NO_PLUGINS"
REGISTER = "haiku_rag_register_"
_TRANSFORM_OR_OBSERVE = ("haiku_rag_before_", "haiku_rag_after_", "haiku_rag_search_finished")

PluginStatus = Literal["loaded", "disabled", "failed"]


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A plugin that was found: where it is from, and what became of it. `reason` says why it is not loaded."""

    name: str
    distribution: str
    version: str
    module: str
    status: PluginStatus = "loaded"
    reason: str = ""
    records: tuple[PluginRecord, ...] = ()
    target: object | None = None

    @property
    def first_party(self) -> bool:
        """Whether it comes with core or one of the distributions that core's extras name."""
        return is_first_party(self.distribution)

    @property
    def provider(self) -> str:
        """The plugin as conflict messages give it."""
        return f"{self.distribution} {self.version} ({self.module})"


def load_plugins(
    *, disabled: Iterable[str] = (), third_party: bool = True, entries: Iterable[EntryPoint] | None = None
) -> list[Plugin]:
    """Load what the entry-point group names, sorted by name.

    `disabled` and the variable `HAIKU_RAG_DISABLE_PLUGINS` name plugins or distributions that are not imported;
    `third_party=False` leaves every stranger's plugin out.
    """
    blocked = {normalized(name) for name in (*disabled, *os.environ.get(DISABLE_VARIABLE, "").split(","))} - {""}
    found = entry_points(group=PROJECT) if entries is None else entries
    unique = {(entry.name, entry.value, _distribution(entry)[0]): entry for entry in found}
    plugins = [_load(unique[key], blocked=blocked, third_party=third_party) for key in sorted(unique)]
    first = {id(plugin.target): plugin for plugin in reversed(plugins) if plugin.target is not None}
    return [
        plugin
        if plugin.target is None or first[id(plugin.target)] is plugin
        else replace(
            plugin,
            status="failed",
            target=None,
            records=(),
            reason=f"it names the module of plugin '{first[id(plugin.target)].name}'",
        )
        for plugin in plugins
    ]


def _distribution(entry: EntryPoint) -> tuple[str, str]:
    return (entry.dist.name, entry.dist.version) if entry.dist else ("unknown", "0")


def _load(entry: EntryPoint, *, blocked: set[str], third_party: bool) -> Plugin:
    distribution, version = _distribution(entry)
    facts: dict[str, Any] = {
        "name": entry.name,
        "distribution": distribution,
        "version": version,
        "module": entry.value,
    }
    if {normalized(entry.name), normalized(distribution)} & blocked:
        return Plugin(**facts, status="disabled", reason="it is disabled")
    if not third_party and not is_first_party(distribution):
        return Plugin(**facts, status="disabled", reason="third-party plugins are off")
    try:
        target = entry.load()
        return Plugin(**facts, target=target, records=collect(target))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the plugin boundary: an import may even exit
        return Plugin(**facts, status="failed", reason=_one_line(error))


def factory_object(factory: str) -> Any:
    """What `package.module:object` names, imported now. Whatever the import raises comes through."""
    module, _, attribute = factory.partition(":")
    value: Any = import_module(module)
    for part in attribute.split("."):
        value = getattr(value, part)
    return value


def collect(target: object) -> tuple[PluginRecord, ...]:
    """The records of one plugin, all of them or, with a `TypeError` or `ValueError`, none."""
    hooks = _hooks_of(target)
    manager = new_manager()
    manager.register(target)
    records: list[PluginRecord] = []
    for name, hook in hooks.items():
        if name.startswith(REGISTER):
            records += _drain(name, hook)
    keys = [(record.kind, record.name) for record in records]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise ValueError(f"it yields the {twice[0]} '{twice[1]}' twice")
    return tuple(records)


def new_manager() -> pluggy.PluginManager:
    """A plugin manager that knows every hook and no plugin."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


def _hooks_of(target: object) -> Mapping[str, Any]:
    known = new_manager().hook.__dict__
    hooks = {name: getattr(target, name) for name in dir(target) if name.startswith("haiku_rag_")}
    for name, hook in hooks.items():
        if name not in known:
            raise ValueError(f"there is no hook '{name}'.{suggestion(name, known)}")
        if not hasattr(hook, f"{PROJECT}_impl"):
            raise ValueError(f"'{name}' is not marked with @hookimpl")
        options = getattr(hook, f"{PROJECT}_impl")
        if options["wrapper"] or options["hookwrapper"]:
            raise ValueError(f"'{name}' is a wrapper, and hooks here are not wrapped")
        asynchronous = inspect.iscoroutinefunction(hook) and not name.startswith(_TRANSFORM_OR_OBSERVE)
        if asynchronous or inspect.isasyncgenfunction(hook):
            raise ValueError(f"'{name}' is asynchronous, and must not be")
    return hooks


def _drain(name: str, hook: Any) -> list[PluginRecord]:
    expected = RECORD_TYPES[name.removeprefix(REGISTER)]
    records = list(hook() or ())
    for record in records:
        if not isinstance(record, expected):
            raise TypeError(f"'{name}' yielded a {type(record).__name__}, and must yield {expected.__name__}")
    return records


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
