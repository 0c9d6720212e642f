"""The command line: `cli` is the group, `build_group` makes another one to mount or to extend."""

import os
from typing import Any

import click

from haiku.rag.cli.group import CommandGroup
from haiku.rag.cli.invocation import Invocation
from haiku.rag.cli.logs import start_logging
from haiku.rag.plugins.kernel import Kernel
from haiku.rag.plugins.loading import NO_PLUGINS_VARIABLE

HELP = """Search several knowledge bases as one.

The databases are those of the configuration. 'COMMAND --help' says more about a command.
"""


def build_group(name: str = "haiku-rag", *, kernel: Kernel | None = None, help: str = HELP) -> CommandGroup:
    """A group with the global options and every registered command.

    It is a `click.Group`: mount it with `other.add_command(build_group("rag"))`, extend it with `@group.command()`.
    `kernel` is used as it is; without one, plugins are loaded for the configuration when they are first needed.
    Errors are reported within the group, so a mounted one keeps its exit statuses.
    """
    return CommandGroup(
        name,
        kernel=kernel,
        help=help,
        params=_options(),
        callback=_begin,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _options() -> list[click.Parameter]:
    return [
        click.Option(["--config", "config_path"], metavar="PATH", is_eager=True, help="The configuration file."),
        click.Option(["--db-name", "database_name"], metavar="NAME", help="One of the configured databases."),
        click.Option(["--read-only"], is_flag=True, help="Open databases for reading only."),
        click.Option(
            ["--no-plugins"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_without_plugins,
            help="Do not import third-party plugins.",
        ),
        click.Option(["--verbose"], is_flag=True, help="Log what is done; show tracebacks."),
        click.Option(
            ["-v", "--version"], is_flag=True, expose_value=False, callback=_version, help="Show the version and exit."
        ),
    ]


@click.pass_context
def _begin(
    ctx: click.Context, config_path: str | None, database_name: str | None, *, read_only: bool, verbose: bool
) -> None:
    group = ctx.command
    ctx.obj = Invocation(
        config_path=config_path,
        database_name=database_name,
        read_only=read_only,
        kernel=group.kernel if isinstance(group, CommandGroup) else None,
    )
    start_logging(ctx, verbose=verbose)


def _without_plugins(ctx: click.Context, _: click.Parameter, value: Any) -> None:
    """Say so in the environment, where whoever loads plugins looks, until the context closes."""
    if not value:
        return
    before = os.environ.get(NO_PLUGINS_VARIABLE)
    os.environ[NO_PLUGINS_VARIABLE] = "1"

    def restore() -> None:
        os.environ.pop(NO_PLUGINS_VARIABLE)
        if before is not None:
            os.environ[NO_PLUGINS_VARIABLE] = before

    ctx.call_on_close(restore)


def _version(ctx: click.Context, _: click.Parameter, value: Any) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    click.echo(f"haiku-rag {version('haiku-rag-cli')} (core {version('haiku-rag-core')})")
    ctx.exit()


cli = build_group()
