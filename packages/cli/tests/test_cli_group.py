"""The group: lazy, extensible, mountable, and unharmed by a broken command."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from haiku.rag.cli.app import build_group, cli
from haiku.rag.errors import HaikuRagError
from haiku.rag.plugins import CommandRecord, ErrorRecord, hookimpl
from haiku.rag.testing import testing_kernel, testing_plugin

HEAVY = ("lancedb", "pyarrow", "numpy", "pydantic_ai", "onnxruntime", "tokenizers", "httpx", "rich", "haiku.rag.client")


class QuotaError(HaikuRagError):
    """An error of a stranger's plugin."""


class SmallQuotaError(QuotaError):
    """One that derives from a registered one."""


@click.command()
@click.argument("how", default="well")
def greet(how: str) -> None:
    """Greet."""
    if how == "quota":
        raise SmallQuotaError("the quota is used up.\nTry again tomorrow.")
    if how == "value":
        raise ValueError("how must be a word")
    if how == "odd":
        raise LookupError("something odd")
    if how == "mute":
        raise LookupError
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "pipe":
        raise BrokenPipeError
    click.echo(f"greetings, {how}")


not_a_command = 1


def plugin(**factories: str) -> Any:
    """A stranger's plugin that registers commands by their factories."""

    @hookimpl
    def register() -> Any:
        for name, factory in factories.items():
            yield CommandRecord(name=name, summary=f"The command {name}", factory=factory, hidden=name == "hidden")

    return SimpleNamespace(haiku_rag_register_command=register)


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that holds what this test module defines."""
    monkeypatch.setitem(sys.modules, "acme_commands", sys.modules[__name__])
    return "acme_commands"


@pytest.fixture
def stranger(acme: str) -> Any:
    """A stranger's plugin with a command and an error."""

    @hookimpl
    def register_error() -> Any:
        yield ErrorRecord(name="quota", summary="Quota", factory=f"{acme}:QuotaError", exit_status=7)

    made = plugin(greet=f"{acme}:greet", hidden=f"{acme}:greet")
    made.haiku_rag_register_error = register_error
    return testing_plugin(made, name="acme", distribution="acme-tools", version="2.1")


def test_help_imports_nothing_heavy_and_no_command() -> None:
    code = f"""
import sys
from haiku.rag.cli.app import cli
try:
    cli(["--help"])
except SystemExit as end:
    assert end.code == 0, end.code
found = [name for name in {HEAVY!r} if name in sys.modules]
found += [name for name in sys.modules if name.startswith("haiku.rag.cli.commands")]
assert not found, found
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Search one database, or several as one" in done.stdout


@pytest.mark.parametrize("command", ["add", "add-src", "delete", "get", "info", "init", "list", "search"])
def test_the_help_of_a_command_imports_no_client(command: str) -> None:
    code = f"""
import sys
from haiku.rag.cli.app import cli
try:
    cli([{command!r}, "--help"])
except SystemExit as end:
    assert end.code == 0, end.code
assert not [name for name in {HEAVY!r} if name in sys.modules]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_line_is_composed_of_core_a_first_party_plugin_and_a_stranger(shell: Any, stranger: Any) -> None:
    shell.use(stranger)
    listed = shell("--help").stdout
    assert "The command greet" in listed
    assert "List documents" in listed
    assert "hidden" not in listed
    assert shell("greet").stdout == "greetings, well\n"
    assert shell("hidden", "too").stdout == "greetings, too\n"
    shell.configure("a")
    shell.fill("a", "one text")
    assert len(shell.data("list")["results"]) == 1


def test_the_group_is_extended_and_mounted(shell: Any, stranger: Any) -> None:
    shell.use(stranger)

    @shell.group.command()
    def greet() -> None:
        """An own command comes before a record."""
        click.echo("own")

    @shell.group.command(hidden=True)
    def secret() -> None:
        """Not shown."""

    @click.group()
    def tool() -> None:
        """A host."""

    tool.add_command(shell.group, "rag")
    runner = CliRunner()
    assert runner.invoke(tool, ["rag", "greet"]).stdout == "own\n"
    listed = runner.invoke(tool, ["rag", "-h"]).stdout
    assert "An own command comes before a record." in listed
    assert "  secret " not in listed
    assert runner.invoke(tool, ["rag", "get", "x"]).exit_code == 1
    failed = runner.invoke(tool, ["rag", "search", " "])
    assert (failed.exit_code, failed.stderr) == (2, "Error: the query is empty: say what to look for\n")


def test_an_unknown_command_says_what_was_meant(shell: Any) -> None:
    result = shell("serach", "x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: no command 'serach'. Known: add, add-src, create-index, delete, ")
    assert result.stderr.endswith("Did you mean 'search'?\n")


def test_an_unknown_command_that_an_extra_brings_says_what_to_install() -> None:
    result = CliRunner().invoke(build_group(kernel=testing_kernel()), ["mcp"])
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: no command 'mcp'. No plugin that provides a command is installed. "
        "Install it with: pip install 'haiku-rag-core[mcp]'.\n"
    )


def test_a_group_without_commands_has_no_list_of_them() -> None:
    assert "Commands" not in CliRunner().invoke(build_group(kernel=testing_kernel()), ["--help"]).stdout


def test_an_option_where_the_command_should_be_is_explained(shell: Any) -> None:
    result = shell("--db", "x")
    assert result.exit_code == 2
    assert "No such option" in result.stderr


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise RuntimeError('torn')", "RuntimeError: torn"),
        ("import not_installed_anywhere", "needs not_installed_anywhere"),
        ("command = 1", "is not a click command"),
        ("other = 1", "could not be loaded: AttributeError"),
    ],
)
def test_a_broken_command_costs_that_command_only(
    shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str
) -> None:
    (tmp_path / "torn_command.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torn_command", raising=False)
    shell.use(testing_plugin(plugin(torn="torn_command:command"), name="torn", distribution="torn-tools", version="1"))
    result = shell("torn")
    assert (result.exit_code, result.stdout) == (1, "")
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1
    assert "The command torn" in shell("--help").stdout
    assert shell("plugins", "list").exit_code == 0


def test_a_command_of_two_plugins_is_a_conflict_that_names_both(shell: Any, acme: str) -> None:
    both = [testing_plugin(plugin(greet=f"{acme}:greet"), name=name, version="1") for name in ("left", "right")]
    shell.use(*both)
    result = shell("greet")
    assert result.exit_code == 1
    assert "is provided by two plugins: left 1 " in result.stderr
    assert "greet" not in shell("--help").stdout


def test_the_error_of_a_plugin_ends_with_its_registered_status(shell: Any, stranger: Any) -> None:
    shell.use(stranger)
    result = shell("greet", "quota")
    assert (result.exit_code, result.stderr) == (7, "Error: the quota is used up. Try again tomorrow.\n")


def test_a_plain_value_error_is_wrong_usage(shell: Any, stranger: Any) -> None:
    shell.use(stranger)
    result = shell("greet", "value")
    assert (result.exit_code, result.stderr) == (2, "Error: how must be a word\n")


HINT = "For the traceback, run it again with --verbose before the command, or with HAIKU_RAG_DEBUG=1.\n"


def test_what_was_not_expected_is_one_line_with_a_hint(shell: Any, stranger: Any) -> None:
    shell.use(stranger)
    result = shell("greet", "odd")
    assert (result.exit_code, result.stderr) == (1, f"Error: LookupError: something odd. {HINT}")
    assert shell("greet", "mute").stderr == f"Error: LookupError. {HINT}"


def test_a_traceback_is_shown_to_who_asks_for_it(shell: Any, stranger: Any) -> None:
    shell.use(stranger)
    for result in (shell("--verbose", "greet", "odd"), shell("greet", "odd", env={"HAIKU_RAG_DEBUG": "1"})):
        assert result.exit_code == 1
        assert "Traceback" in result.stderr
        assert f"\nError: LookupError: something odd. {HINT}" in result.stderr


def test_an_interruption_ends_with_130_and_a_closed_pipe_quietly(shell: Any, stranger: Any) -> None:
    shell.use(stranger)
    interrupted, closed = shell("greet", "interrupt"), shell("greet", "pipe")
    assert (interrupted.exit_code, interrupted.output) == (130, "")
    assert (closed.exit_code, closed.output) == (0, "")


def completions(group: click.Command, *arguments: str, incomplete: str = "") -> dict[str, str | None]:
    """What the shell is offered."""
    complete = ShellComplete(group, {}, "rag", "_RAG_COMPLETE")
    return {item.value: item.help for item in complete.get_completions(list(arguments), incomplete)}


def test_completion_offers_commands_and_survives_a_broken_one(shell: Any) -> None:
    shell.use(plugin(torn="nowhere:command"))
    assert completions(shell.group, incomplete="se") == {
        "search": "Search one database, or several as one",
        "settings": "Show the configuration in effect, secrets masked",
    }
    assert "--db-name" in completions(shell.group, incomplete="--d")
    assert "--limit" in completions(shell.group, "search", incomplete="--l")
    assert completions(shell.group, "torn", incomplete="--l") == {}


def test_the_version_names_both_distributions() -> None:
    result = CliRunner().invoke(cli, ["-v"])
    assert (result.exit_code, result.stdout) == (0, "haiku-rag 0.1.0 (core 0.1.0)\n")


def test_without_arguments_the_help_is_shown(shell: Any) -> None:
    assert "Usage:" in shell().output


def test_the_group_lists_its_commands_as_any_click_group(shell: Any) -> None:
    names = shell.group.list_commands(click.Context(shell.group))
    assert names == sorted(names)
    assert {"add", "search"} <= set(names)
    assert "rm" not in names


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder for the module path, with a third-party distribution whose plugin says so when it is imported."""
    root = tmp_path / "site"
    info = root / "acme_loud-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-loud\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[haiku_rag]\nloud = acme_loud\n")
    (root / "acme_loud.py").write_text("import sys\nsys.stderr.write('imported\\n')\n")
    return root


@pytest.mark.parametrize(
    ("arguments", "setting", "loud"),
    [
        (["--help"], ("", {}), True),
        (["--help"], ("search: {limit: 3}", {}), True),
        (["--no-plugins", "--help"], ("", {}), False),
        (["--help", "--no-plugins"], ("", {}), False),
        (["--no-plugins", "plugins", "list"], ("", {}), False),
        (["--help"], ("", {"HAIKU_RAG_NO_PLUGINS": "1"}), False),
        (["--help"], ("", {"HAIKU_RAG_DISABLE_PLUGINS": "acme-loud"}), False),
        (["--help"], ("plugins: {disabled: [loud]}", {}), False),
        (["plugins", "list"], ("plugins: {disabled: [acme-loud]}", {}), False),
        (["--help"], ("plugins: [", {}), True),
        (["--help"], ("plugins: nonsense", {}), True),
        (["--help"], ("[plugins]", {}), True),
        (["--help", "--config", "other.yaml"], ("plugins: {disabled: [loud]}", {}), True),
    ],
)
def test_switching_plugins_off_acts_before_they_are_imported(
    process: Any,
    tmp_path: Path,
    installed: Path,
    arguments: list[str],
    setting: tuple[str, dict[str, str]],
    *,
    loud: bool,
) -> None:
    config, env = setting
    (tmp_path / "haiku.rag.yaml").write_text(config)
    done = process(*arguments, PYTHONPATH=str(installed), **env)
    assert done.returncode == 0
    assert (b"imported" in done.stderr) is loud


def test_no_plugins_leaves_the_environment_as_it_was(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell("--no-plugins", "plugins", "list").exit_code == 0
    monkeypatch.setenv("HAIKU_RAG_NO_PLUGINS", "0")
    assert shell("--no-plugins", "plugins", "list").exit_code == 0
    assert os.environ["HAIKU_RAG_NO_PLUGINS"] == "0"
