"""Trying a plugin in earnest: is it loaded, and is each factory there and of its kind."""

from collections.abc import Callable, Iterator
from typing import Any

import click

from haiku.rag.errors import HaikuRagError
from haiku.rag.plugins.kernel import Kernel
from haiku.rag.plugins.loading import Plugin, factory_object
from haiku.rag.plugins.records import PluginRecord


def faults(kernel: Kernel, plugin: Plugin) -> Iterator[str]:
    """What is wrong with a plugin, a sentence each; nothing where it is well."""
    if plugin.status != "loaded":
        yield f"it was not loaded: {plugin.reason}."
        return
    for record in plugin.records:
        fault = _fault(record)
        if fault:
            yield f"{record.kind} '{record.name}': {fault}."
    names = {f"{record.kind} '{record.name}' " for record in plugin.records}
    yield from (conflict for conflict in kernel.conflicts() if conflict.startswith(tuple(names)))


def _fault(record: PluginRecord) -> str:
    try:
        value = factory_object(record.factory)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the plugin boundary: an import may raise anything
        return f"'{record.factory}' cannot be imported: {type(error).__name__}: {error}"
    fits, wanted = _EXPECTED.get(record.kind, (callable, "can be called"))
    return "" if fits(value) else f"'{record.factory}' is not what {wanted}"


def _is_command(value: Any) -> bool:
    return isinstance(value, click.Command)


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, HaikuRagError)


def _is_section(value: Any) -> bool:
    from haiku.rag.config import Section

    return isinstance(value, type) and issubclass(value, Section)


_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "command": (_is_command, "a command must be: a click.Command"),
    "error": (_is_error, "an error must be: a class derived from HaikuRagError"),
    "config_section": (_is_section, "a section must be: a class derived from haiku.rag.config.Section"),
}
