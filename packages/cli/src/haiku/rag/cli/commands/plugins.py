"""`haiku-rag plugins`."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from haiku.rag.cli.boundary import Failure
from haiku.rag.cli.checking import faults
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.options import json_option
from haiku.rag.cli.output import print_json, print_text, warning
from haiku.rag.errors import ConfigError, UnknownPluginError
from haiku.rag.plugins import messages
from haiku.rag.plugins.kernel import Kernel, load_kernel
from haiku.rag.plugins.loading import Plugin
from haiku.rag.plugins.records import PluginRecord


@click.group()
def command() -> None:
    """Show what is installed, and check it. Opens no database."""


@command.command("list")
@json_option
@pass_invocation
def list_plugins(invocation: Invocation, *, as_json: bool) -> None:
    """List the plugins: name, distribution, version, status, and what each provides."""
    kernel, inert = _installed(invocation)
    if as_json:
        plugins = [_fields(plugin) for plugin in kernel.plugins]
        print_json({"results": plugins, "conflicts": kernel.conflicts(), "inert_sections": inert})
        return
    for line in _lines(kernel, inert):
        print_text(line)


@command.command()
@click.argument("name")
@json_option
@pass_invocation
def show(invocation: Invocation, name: str, *, as_json: bool) -> None:
    """Show a plugin's records."""
    plugins = _named(_installed(invocation)[0], name)
    if as_json:
        print_json({"results": [{**_fields(plugin), "records": _records(plugin)} for plugin in plugins]})
        return
    for plugin in plugins:
        print_text(_headline(plugin))
        for record in _records(plugin):
            print_text(f"  {record['kind']} '{record['name']}': {record['summary']}")
            print_text(f"    factory: {record['factory']}")
            facts = {key: value for key, value in record.items() if value and key not in _SHOWN}
            for key, value in facts.items():
                print_text(f"    {key}: {', '.join(value) if isinstance(value, list) else value}")


@command.command()
@click.argument("name")
@json_option
@pass_invocation
def check(invocation: Invocation, name: str, *, as_json: bool) -> None:
    """Try a plugin: does it load, are its records valid, is each factory there. Exit status 1 where not."""
    kernel, _ = _installed(invocation)
    found = {plugin.module: (plugin, list(faults(kernel, plugin))) for plugin in _named(kernel, name)}
    if as_json:
        print_json({"results": [{**_fields(plugin), "faults": wrong} for plugin, wrong in found.values()]})
    for plugin, wrong in found.values():
        if not as_json:
            print_text(_headline(plugin))
            print_text("\n".join(f"  {fault}" for fault in wrong or _passed(plugin)))
    count = sum(len(wrong) for _, wrong in found.values())
    if count:
        raise Failure(f"plugin '{name}' has {count} fault{'s' if count > 1 else ''}.")


_SHOWN = frozenset({"kind", "name", "summary", "factory"})


def _installed(invocation: Invocation) -> tuple[Kernel, list[str]]:
    """The kernel and the sections that nothing reads; a configuration with faults costs the sections only."""
    try:
        config = invocation.config
    except ConfigError as error:
        warning(str(error))
        return invocation.kernel or load_kernel(), []
    return config.kernel, list(config.inert_sections)


def _named(kernel: Kernel, name: str) -> list[Plugin]:
    found = [plugin for plugin in kernel.plugins if name in (plugin.name, plugin.distribution)]
    if not found:
        raise UnknownPluginError(messages.unknown("plugin", name, {plugin.name for plugin in kernel.plugins}))
    return found


def _fields(plugin: Plugin) -> dict[str, Any]:
    kept = ("name", "distribution", "version", "module", "status", "reason")
    provides = [f"{record.kind}:{record.name}" for record in plugin.records]
    return {**{key: getattr(plugin, key) for key in kept}, "provides": provides}


def _records(plugin: Plugin) -> list[dict[str, Any]]:
    return [_record(record) for record in plugin.records]


def _record(record: PluginRecord) -> dict[str, Any]:
    facts = {key: sorted(value) if isinstance(value, frozenset) else value for key, value in asdict(record).items()}
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in facts.items()}
    return {"kind": record.kind, **plain}


def _headline(plugin: Plugin) -> str:
    reason = f": {plugin.reason}" if plugin.reason else ""
    return f"{plugin.name} ({plugin.distribution} {plugin.version}) {plugin.status}{reason}"


def _passed(plugin: Plugin) -> list[str]:
    count = len(plugin.records)
    return [f"loaded; {count} record{'' if count == 1 else 's'}, and every factory is there."]


def _lines(kernel: Kernel, inert: list[str]) -> Iterator[str]:
    for plugin in kernel.plugins:
        yield _headline(plugin)
        kinds: dict[str, list[str]] = {}
        for record in plugin.records:
            kinds.setdefault(record.kind, []).append(record.name)
        yield from (f"  {kind}: {', '.join(names)}" for kind, names in kinds.items())
    yield from (f"Conflict: {sentence}" for sentence in kernel.conflicts())
    if inert:
        yield f"Sections of the configuration that nothing reads: {', '.join(inert)}"
