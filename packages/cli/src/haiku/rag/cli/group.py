"""The group: it lists commands from their records, and imports the one that is invoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from haiku.rag.cli.boundary import USAGE, Failure, reported
from haiku.rag.cli.early import plugin_settings
from haiku.rag.cli.output import open_closed_streams, plugins_speaking, print_what_fits
from haiku.rag.errors import HaikuRagError, PluginNotLoadedError
from haiku.rag.plugins import CommandRecord, messages
from haiku.rag.plugins.catalogue import extra_for
from haiku.rag.plugins.kernel import Kernel, load_kernel, not_loaded

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

KIND = CommandRecord.kind


class CommandGroup(click.Group):
    """A click group over the kernel's command records, beside commands that are added to it as to any group.

    An added command comes before a record of its name. `kernel` is the one to list; without it, the one of the
    configuration, loaded when it is first needed.
    """

    def __init__(self, name: str | None = None, *, kernel: Kernel | None = None, **settings: Any) -> None:
        super().__init__(name, **settings)
        self.kernel = kernel

    def kernel_for(self, ctx: click.Context) -> Kernel:
        """The kernel whose commands are offered."""
        key = f"{__name__}.kernel.{id(self)}"
        if self.kernel is not None:
            return self.kernel
        if key not in ctx.meta:
            disabled, prefer = plugin_settings(ctx.params.get("config_path"))
            with plugins_speaking():
                ctx.meta[key] = load_kernel(disabled=disabled, prefer=prefer)
        kernel: Kernel = ctx.meta[key]
        return kernel

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the options before the command."""
        open_closed_streams()
        print_what_fits()
        return super().make_context(info_name, args, parent, **extra)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """`--help`, after the options that decide what there is to list."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.is_eager = False
        return option

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names that are shown."""
        return sorted(self._summaries(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; a `PluginError` says why a known one cannot be had."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        kernel = self.kernel_for(ctx)
        if not any(entry.record.name == cmd_name for entry in kernel.provided(KIND)):
            return None
        try:
            with plugins_speaking():
                return load_command(kernel, cmd_name)
        except HaikuRagError:
            if ctx.resilient_parsing:
                return None
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with; for an unknown one, what was meant or what to install."""
        name = args[0]
        unknown = not name.startswith("-") and self.get_command(ctx, name) is None
        if unknown and not ctx.resilient_parsing:
            raise Failure(self._unknown(ctx, name), status=USAGE)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with their summaries; imports none of them."""
        rows = sorted(self._summaries(ctx).items())
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so; imports none of them."""
        from click.shell_completion import CompletionItem

        names = sorted(self._summaries(ctx).items())
        found = [CompletionItem(name, help=summary) for name, summary in names if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever it raises becomes one line and an exit status."""
        with reported(self.kernel_for(ctx), verbose=bool(ctx.params.get("verbose"))):
            try:
                return super().invoke(ctx)
            except click.NoSuchOption as error:
                raise self._placed(error, ctx) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The group's own options; an unknown one may be a command's."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            text = f"No such option '{error.option_name}' before the command. A command's own options come after it."
            raise click.UsageError(text, ctx) from None

    def _placed(self, error: click.NoSuchOption, ctx: click.Context) -> click.UsageError:
        """What to say of an option that a command does not have: the group's come before the command."""
        if not any(error.option_name in parameter.opts for parameter in self.params):
            return error
        name = error.ctx.command_path.removeprefix(ctx.command_path).strip() if error.ctx else "COMMAND"
        return click.UsageError(
            f"'{error.option_name}' goes before the command: {ctx.command_path} {error.option_name} … {name}", error.ctx
        )

    def _summaries(self, ctx: click.Context) -> dict[str, str]:
        records = self.kernel_for(ctx).records(CommandRecord)
        offered = {record.name: record.summary for record in records if not record.hidden}
        added = {name: command for name, command in self.commands.items() if not command.hidden}
        return offered | {name: command.get_short_help_str(80) for name, command in added.items()}

    def _unknown(self, ctx: click.Context, name: str) -> str:
        text = messages.unknown(KIND, name, self._summaries(ctx), extra=extra_for(KIND, name))
        failed = [not_loaded(plugin) for plugin in self.kernel_for(ctx).plugins if plugin.status == "failed"]
        return " ".join([text, *(sentence[:1].upper() + sentence[1:] for sentence in failed)])


def load_command(kernel: Kernel, name: str) -> click.Command:
    """The command that a record's factory names, imported now; a `PluginError` says what is wrong with it."""
    command = kernel.resolve(KIND, name)
    if not isinstance(command, click.Command):
        plugin = kernel.find(KIND, name).plugin
        provider = messages.labelled(plugin.name, plugin.distribution, plugin.version)
        raise PluginNotLoadedError(f"command '{name}' of plugin {provider} is not a click command.")
    return command
