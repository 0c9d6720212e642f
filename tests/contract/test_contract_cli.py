"""Contract K: the command line."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from haiku.rag.cli import plugin as cli_plugin
from haiku.rag.cli.app import build_group
from haiku.rag.testing import memory_server, testing_kernel, testing_plugin
from haiku.rag.testing import plugin as memory_plugin

from .spoken import MARKER

CONFIGURATION = "haiku.rag.yaml"
QUESTION = "pilots at dawn"


class Shell:
    """A command line over databases in memory at locations that must not be told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.server = memory_server(name)
        own = testing_plugin(cli_plugin, name="cli", distribution="haiku-rag-cli", version="0")
        self.group = build_group(kernel=testing_kernel(own, testing_plugin(memory_plugin, name="memory")))

    def configure(self, *names: str, **tagged: Mapping[str, str]) -> None:
        databases = {**{name: f"memory://{MARKER}/{name}" for name in names}, **tagged}
        data = {"memory": {"server": self.name, "databases": databases}}
        Path(CONFIGURATION).write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(self.group, list(arguments))

    def data(self, *arguments: str) -> Any:
        result = self(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def sources(self, *arguments: str) -> list[str]:
        return [entry["source"] for entry in self.data(*arguments)["results"]]

    def opened(self) -> int:
        return sum(count for (_, operation), count in self.server.calls.items() if operation == "open")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the test's own, and none of the developer's variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("HAIKU_RAG_CONFIG_PATH", "HAIKU_RAG_DEBUG", "HAIKU_RAG_NO_PLUGINS", "HAIKU_RAG_DISABLE_PLUGINS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def shell(request: pytest.FixtureRequest) -> Shell:
    """Databases `a` and `b`, with a text each."""
    made = Shell(request.node.nodeid)
    made.configure("a", "b")
    for name, text in (("a", "Pilots wait at dawn."), ("b", "Pilots sleep.")):
        assert made("--db-name", name, "init").exit_code == 0
        assert made("--db-name", name, "add", text, "--title", f"in {name}", "--uri", f"{name}.md").exit_code == 0
    made.server.calls.clear()
    return made


def test_K1_search_covers_the_configured_set(shell: Shell) -> None:
    assert shell.sources("search", QUESTION) == ["a", "b"]


def test_K1_or_the_one_that_db_name_selects(shell: Shell) -> None:
    assert shell.sources("--db-name", "b", "search", QUESTION) == ["b"]
    assert {location for location, _ in shell.server.calls} == {f"memory://{MARKER}/b"}


def test_K1_or_those_that_source_names(shell: Shell) -> None:
    shell.configure("a", "b", "c")
    assert shell.sources("search", QUESTION, "--source", "b", "--source", "a") == ["a", "b"]
    assert shell("search", QUESTION).exit_code == 1


@pytest.mark.parametrize("command", [("settings",), ("init-config", "x.yaml"), ("plugins", "list")])
def test_K2_commands_that_need_no_database_open_none(shell: Shell, command: tuple[str, ...]) -> None:
    assert shell(*command).exit_code == 0
    assert shell.opened() == 0
    assert MARKER not in shell(*command).stderr


ONE: list[tuple[str, ...]] = [
    ("init",),
    ("add", "text"),
    ("add-src", "."),
    ("list",),
    ("get", "in a"),
    ("delete", "x"),
    ("rm", "x"),
    ("info",),
    ("rebuild",),
    ("vacuum",),
    ("create-index",),
    ("tag", "create", "x"),
    ("tag", "list"),
    ("tag", "delete", "x"),
    ("tag", "restore", "x", "--yes"),
    ("history",),
    ("migrate",),
    ("doctor",),
]
LIVE = [("init",), ("add", "text"), ("add-src", "."), ("delete", "x"), ("rm", "x"), *ONE[8:]]
"""Commands that work on the live database only."""
AT_A_TAG = [("list",), ("get", "in a"), ("search", QUESTION), ("info",)]
"""Commands that take `--at`."""


@pytest.mark.parametrize("command", ONE)
def test_K3_every_other_command_needs_one_database(shell: Shell, command: tuple[str, ...]) -> None:
    result = shell(*command)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert "'a', 'b'" in result.stderr
    assert "--db-name" in result.stderr
    assert shell.opened() == 0


def test_K3_a_configured_set_of_one_is_selected_by_itself(shell: Shell) -> None:
    shell.configure("a")
    assert shell.sources("list") == ["a"]
    assert shell("add", "Boats.").exit_code == 0
    assert shell("info").exit_code == 0


@pytest.mark.parametrize("command", [*ONE, ("search", QUESTION)])
def test_K3_both_selectors_at_once_are_an_error(shell: Shell, command: tuple[str, ...]) -> None:
    result = shell("--db-name", "a", *command, "--db", "x.memory")
    assert result.exit_code == 2
    assert "Give one of them" in result.stderr


@pytest.mark.parametrize("command", ONE[8:])
def test_K3_looking_after_the_chosen_one_leaves_the_others_alone(shell: Shell, command: tuple[str, ...]) -> None:
    assert shell("--db-name", "a", "tag", "create", "x" if command[1:2] != ("create",) else "y").exit_code == 0
    result = shell("--db-name", "a", *command)
    assert result.exit_code == 0, result.output
    assert {location for location, _ in shell.server.calls} == {f"memory://{MARKER}/a"}


def test_K3_a_tag_restored_needs_a_yes_where_nobody_can_be_asked(shell: Shell) -> None:
    assert shell("--db-name", "a", "tag", "create", "x").exit_code == 0
    result = shell("--db-name", "a", "tag", "restore", "x")
    assert result.exit_code == 2
    assert "Give --yes" in result.stderr


def configure_at_a_tag(shell: Shell) -> None:
    """Beside `a`, an entry `old` for it as it was before it was written once more."""
    assert shell("--db-name", "a", "tag", "create", "v1").exit_code == 0
    assert shell("--db-name", "a", "add", "Pilots land at dawn.").exit_code == 0
    shell.configure("a", old={"location": f"memory://{MARKER}/a", "tag": "v1"})


@pytest.mark.parametrize("command", LIVE)
def test_G3_what_works_on_the_live_database_refuses_a_tagged_entry_by_name(
    shell: Shell, command: tuple[str, ...]
) -> None:
    configure_at_a_tag(shell)
    shell.server.calls.clear()
    result = shell("--db-name", "old", *command)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "works on the live database, and 'old' is read at the tag 'v1'" in result.stderr
    assert MARKER not in result.output
    assert shell.opened() == 0


@pytest.mark.parametrize("command", LIVE)
def test_G3_and_takes_no_at(shell: Shell, command: tuple[str, ...]) -> None:
    result = shell("--db-name", "a", *command, "--at", "v1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--at" in result.stderr


@pytest.mark.parametrize("command", AT_A_TAG)
def test_G3_what_reads_takes_at_and_a_tagged_entry_alike(shell: Shell, command: tuple[str, ...]) -> None:
    configure_at_a_tag(shell)

    def told(*arguments: str) -> Any:
        told = shell.data(*arguments)
        return json.dumps(told["results"]).replace('"source": "old"', '"source": "a"')

    assert told("--db-name", "old", *command) == told("--db-name", "a", *command, "--at", "v1")
    if command[0] != "get":
        assert told("--db-name", "old", *command) != told("--db-name", "a", *command)


def test_G2_at_on_a_tagged_entry_or_over_several_is_wrong_usage(shell: Shell) -> None:
    configure_at_a_tag(shell)
    for options, text in ((("--db-name", "old"), "already read at the tag 'v1'"), ((), "'a', 'old'")):
        for command in AT_A_TAG:
            result = shell(*options, *command, "--at", "v1")
            assert (result.exit_code, text in result.stderr) == (2, True)


def test_G4_two_states_of_a_location_are_searched_as_two_databases(shell: Shell) -> None:
    configure_at_a_tag(shell)
    found = shell.data("search", QUESTION)["results"]
    assert sorted((hit["source"], hit["content"]) for hit in found) == [
        ("a", "Pilots land at dawn."),
        ("a", "Pilots wait at dawn."),
        ("old", "Pilots wait at dawn."),
    ]


def test_K4_db_name_selects_an_entry_and_an_unknown_one_is_wrong_usage(shell: Shell) -> None:
    assert shell.sources("--db-name", "b", "list") == ["b"]
    result = shell("--db-name", "bb", "list")
    assert (result.exit_code, result.stderr) == (
        2,
        "Error: no database 'bb' is covered. Covered: 'a', 'b'. Did you mean 'b'?\n",
    )


def test_K4_db_name_haiku_rag_is_the_database_when_nothing_is_configured(shell: Shell) -> None:
    shell.configure()
    assert shell("--db-name", "haiku.rag", "init").exit_code == 0
    assert shell("add", "Boats.").exit_code == 0
    assert shell.sources("--db-name", "haiku.rag", "list") == ["haiku.rag"]


def test_K4_db_opens_a_local_path_named_by_its_stem_whatever_is_configured(shell: Shell, tmp_path: Path) -> None:
    assert shell("init", "--db", "mine.memory").exit_code == 0
    assert shell("add", "Boats.", "--db", "mine.memory").exit_code == 0
    for path in ("mine.memory", str(tmp_path / "mine.memory")):
        assert shell.sources("search", "boats", "--db", path) == ["mine"]
    assert shell("list", "--db", "memory://a").exit_code != 0


def test_K5_results_are_labelled_just_when_the_operation_spans_several(shell: Shell) -> None:
    assert shell("search", QUESTION).stdout.count("database: ") == 2
    for one in (("--db-name", "a", "search", QUESTION), ("search", QUESTION, "--source", "a")):
        assert "database: " not in shell(*one).stdout


def test_K7_done_is_0_and_nothing_found_is_0_for_search_and_list(shell: Shell) -> None:
    shell.configure("empty")
    assert shell("init").exit_code == 0
    for command in (("search", QUESTION), ("list",)):
        result = shell(*command)
        assert result.exit_code == 0
        assert "Error" not in result.output
    assert shell.data("search", QUESTION)["results"] == shell.data("list")["results"] == []


def test_K7_nothing_found_is_1_for_get_and_delete(shell: Shell) -> None:
    for command in ("get", "delete"):
        result = shell("--db-name", "a", command, "nowhere")
        assert (result.exit_code, result.stderr) == (1, "Error: database 'a' holds no document 'nowhere'.\n")


def test_K7_an_operation_that_failed_is_1_with_one_line_and_no_traceback(shell: Shell) -> None:
    shell.server.fail(f"memory://{MARKER}/a", OSError(MARKER))
    result = shell("search", QUESTION)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: database 'a' cannot be read (OSError).")
    assert result.stderr.count("\n") == 1
    assert MARKER not in result.output


def test_K7_an_operation_that_failed_for_some_of_its_items_is_1_and_keeps_the_others(
    shell: Shell, tmp_path: Path
) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "bad.md").write_bytes(b"\xff\xfe\xff")
    (folder / "good.md").write_text("Boats.")
    result = shell("--db-name", "a", "add-src", str(folder))
    assert result.exit_code == 1
    assert "bad.md" in result.stderr
    assert "Traceback" not in result.output
    assert shell.sources("--db-name", "a", "search", "boats")


@pytest.mark.parametrize(
    "command",
    [("search",), ("search", " "), ("search", "x", "--limit", "0"), ("search", "x", "--source", "bb"), ("nothing",)],
)
def test_K7_wrong_usage_is_2(shell: Shell, command: tuple[str, ...]) -> None:
    result = shell(*command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr


def test_K7_json_is_results_and_report_always_with_source(shell: Shell) -> None:
    found = shell.data("search", QUESTION)
    assert list(found) == ["results", "report"]
    assert [entry["name"] for entry in found["report"]["databases"]] == ["a", "b"]
    commands = [("list",), ("get", "in a"), ("info",), ("add", "More."), ("search", QUESTION)]
    for command in commands:
        assert set(shell.sources("--db-name", "a", *command)) == {"a"}


def test_E6_skip_answers_from_the_others_and_warns_on_stderr(shell: Shell) -> None:
    shell.server.fail(f"memory://{MARKER}/a", OSError(MARKER))
    result = shell("search", QUESTION, "--on-unavailable", "skip", "--json")
    assert result.exit_code == 0
    assert [entry["source"] for entry in json.loads(result.stdout)["results"]] == ["b"]
    assert "database 'a' cannot be read (OSError)" in result.stderr
    assert MARKER not in result.output


def test_P5_the_location_is_printed_by_commands_that_report_on_a_database_only(shell: Shell) -> None:
    silent = [
        ("--db-name", "a", *command) for command in ONE if command[0] not in ("init", "add-src", "info", "doctor")
    ]
    for command in (("search", QUESTION), *silent):
        assert MARKER not in shell(*command).output
        assert MARKER not in shell(*command, "--json").output
    assert MARKER in shell("--db-name", "a", "info").output


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line as a whole process, with what is installed."""
    command = [sys.executable, "-m", "haiku.rag.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))


def missing(tmp_path: Path) -> str:
    return str(tmp_path / MARKER / "x.lancedb")


def dead(tmp_path: Path) -> str:
    return f"s3://{MARKER}/db"


@pytest.mark.parametrize("where", [missing, dead])
def test_E1_a_process_leaks_no_location_in_text_json_or_log(tmp_path: Path, where: Callable[[Path], str]) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    options = {
        "aws_endpoint": f"http://{MARKER}.localhost:{port}",
        "aws_access_key_id": MARKER,
        "aws_secret_access_key": MARKER,
        "aws_region": "us-east-1",
        "allow_http": "true",
        "client_max_retries": "0",
    }
    databases = {"ok": str(tmp_path / "ok.lancedb"), "gone": where(tmp_path)}
    Path(CONFIGURATION).write_text(yaml.safe_dump({"lancedb": {"databases": databases, "storage_options": options}}))
    assert run("--db-name", "ok", "init").returncode == 0
    assert run("--db-name", "ok", "add", "Pilots wait at dawn.").returncode == 0
    failed = run("--verbose", "search", QUESTION, "--json")
    skipped = run("search", QUESTION, "--json", "--on-unavailable", "skip")
    assert (failed.returncode, skipped.returncode) == (1, 0)
    assert "'gone'" in failed.stderr
    assert [entry["source"] for entry in json.loads(skipped.stdout)["results"]] == ["ok"]
    assert MARKER not in failed.stdout + failed.stderr + skipped.stdout + skipped.stderr
    assert not (tmp_path / MARKER).exists()
