"""`vacuum`, `create-index`, `tag`, `history` and `migrate`, over databases in memory and over LanceDB."""

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from haiku.rag.client import HaikuRAG
from haiku.rag.errors import StorageError
from haiku.rag.models import UpkeepReport, UpkeepStep
from haiku.rag.testing import MemoryDatabase

ON = ("--db-name", "notes")
PLACE = "memory://secret-host/notes"
OLD = Path(__file__).parents[2] / "lancedb" / "tests" / "fixtures" / "schema-1.zip"


@pytest.fixture
def notes(shell: Any) -> Any:
    """A command line over a database with two documents."""
    shell.configure("notes", "other")
    shell.fill("notes", "They wait.", "They sail.")
    return shell


def texts(shell: Any, *options: str) -> int:
    return len(shell.data(*ON, "list", *options)["results"])


def report(*steps: UpkeepStep, dry_run: bool = False) -> UpkeepReport:
    return UpkeepReport(finished_at=datetime(2026, 5, 1, tzinfo=UTC), dry_run=dry_run, steps=list(steps))


def interrupt(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    """Let a method be interrupted as by Ctrl-C."""

    async def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)


def test_vacuum_prints_each_step_with_its_outcome(notes: Any) -> None:
    planned = notes(*ON, "vacuum", "--dry-run", "--retention-seconds", "0")
    assert (planned.exit_code, planned.stdout) == (0, "old commits: planned: 1 commits\n")
    done = notes(*ON, "vacuum", "--retention-seconds", "0")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "old commits: done: 1 commits\n", "")
    assert notes(*ON, "vacuum").stdout == "old commits: nothing to do\n"


def test_vacuum_keeps_what_the_configuration_says(notes: Any) -> None:
    notes.configure("notes", storage={"vacuum_retention_seconds": 0})
    assert notes("vacuum", "--dry-run").stdout == "old commits: planned: 1 commits\n"


def test_vacuum_as_json_is_its_steps_and_the_report(notes: Any) -> None:
    found = notes.data(*ON, "vacuum", "--dry-run")
    assert [(step["source"], step["name"], step["status"]) for step in found["results"]] == [
        ("notes", "old commits", "nothing to do")
    ]
    assert (found["report"]["source"], found["report"]["dry_run"]) == ("notes", True)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_step_that_fails_is_status_1_and_keeps_the_others(
    notes: Any, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    async def vacuum(*_: Any, **__: Any) -> UpkeepReport:
        return report(UpkeepStep(name="a", status="failed", detail="no\x1b]space"), UpkeepStep(name="b", status="done"))

    monkeypatch.setattr(MemoryDatabase, "vacuum", vacuum)
    result = notes(*ON, "vacuum", *options)
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: steps failed for database 'notes': 'a'. The others were taken; run it again later.\n"
    )
    if options:
        assert [step["status"] for step in json.loads(result.stdout)["results"]] == ["failed", "done"]
    else:
        assert result.stdout == "a: failed: no]space\nb: done\n"


@pytest.mark.parametrize("number", ["-1", "nan", "inf", "1e300", "soon"])
def test_a_retention_that_is_no_number_of_seconds_is_wrong_usage(notes: Any, number: str) -> None:
    result = notes(*ON, "vacuum", "--retention-seconds", number)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr


def test_create_index_prints_the_indexes(notes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result = notes(*ON, "create-index")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Database 'notes' has no indexes.\n")

    async def create_index(_: object) -> dict[str, str]:
        return {"text": "covers\x1b all"}

    monkeypatch.setattr(MemoryDatabase, "create_index", create_index)
    assert notes(*ON, "create-index").stdout == "index text: covers all\n"
    assert notes.data(*ON, "create-index")["results"] == [{"source": "notes", "indexes": {"text": "covers\x1b all"}}]


def test_a_tag_is_made_listed_read_restored_and_deleted(notes: Any) -> None:
    made = notes(*ON, "tag", "create", "spring")
    assert (made.exit_code, made.stdout) == (0, "Database 'notes' has the tag 'spring'.\n")
    assert notes(*ON, "add", "They land.").exit_code == 0
    assert (texts(notes), texts(notes, "--at", "spring")) == (3, 2)
    listed = notes(*ON, "tag", "list")
    assert listed.stdout.startswith("spring  20")
    restored = notes(*ON, "tag", "restore", "spring", "--yes")
    first, second = restored.stdout.splitlines()
    assert (restored.exit_code, first) == (0, "Database 'notes' is as it was at the tag 'spring'.")
    assert texts(notes) == 2
    before = second.removeprefix("The state before has the tag '").removesuffix("'.")
    assert notes(*ON, "tag", "restore", before, "--yes").exit_code == 0
    assert texts(notes) == 3
    assert len(notes.data(*ON, "tag", "list")["results"]) == 3
    gone = notes(*ON, "tag", "delete", "spring")
    assert (gone.exit_code, gone.stdout) == (0, "Deleted the tag 'spring' of database 'notes'.\n")
    assert notes(*ON, "list", "--at", "spring").exit_code == 1


def test_tags_as_json(notes: Any) -> None:
    assert notes.data(*ON, "tag", "list") == {"results": []}
    (made,) = notes.data(*ON, "tag", "create", "a")["results"]
    assert (made["source"], made["name"], made["complete"]) == ("notes", "a", True)
    assert notes.data(*ON, "tag", "list")["results"] == [made]
    (restored,) = notes.data(*ON, "tag", "restore", "a", "--yes")["results"]
    assert (restored["source"], restored["name"]) == ("notes", "a")
    assert restored["before"].startswith("before-restore-")
    assert notes.data(*ON, "tag", "delete", "a")["results"] == [{"source": "notes", "name": "a"}]


def test_no_tags_and_no_history_are_said_on_standard_error(shell: Any) -> None:
    shell.configure("notes")
    assert shell("init").exit_code == 0
    for command, text in (("tag list", "There are no tags to list.\n"), ("history", "There is no history to list.\n")):
        result = shell(*command.split())
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", text)


def test_a_tag_that_cannot_be_read_is_marked() -> None:
    from haiku.rag.cli.commands.tag import tag_line
    from haiku.rag.contracts import TagInfo

    assert tag_line(TagInfo(name="cut", complete=False)) == "cut  (not complete)"


@pytest.mark.parametrize("name", ["nowhere", "", "a\nb", "\udcff"])
def test_a_tag_that_is_not_there_is_one_line(notes: Any, name: str) -> None:
    for command in ("delete", "restore"):
        result = notes(*ON, "tag", command, name, *(["--yes"] if command == "restore" else []))
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("Error: database 'notes' has no tag ")
        assert result.stderr.count("\n") == 1


def test_restoring_without_a_terminal_needs_yes(notes: Any) -> None:
    assert notes(*ON, "tag", "create", "a").exit_code == 0
    result = notes(*ON, "tag", "restore", "a", input="y\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "restoring a tag replaces the current state. Give --yes to do so without being asked." in result.stderr
    assert len(notes.data(*ON, "tag", "list")["results"]) == 1


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("n\n", 1), ("", 130)])
def test_on_a_terminal_restoring_asks(notes: Any, monkeypatch: pytest.MonkeyPatch, typed: str, status: int) -> None:
    assert notes(*ON, "tag", "create", "a").exit_code == 0
    assert notes(*ON, "add", "more").exit_code == 0
    monkeypatch.setattr("haiku.rag.cli.commands.tag.at_terminal", lambda: True)
    result = notes(*ON, "tag", "restore", "a", input=typed)
    assert result.exit_code == status
    assert "Replace the current state of database 'notes' by that of the tag 'a'? [y/N]: " in result.stderr
    assert ("Error: nothing was restored.\n" in result.stderr) == (status == 1)
    assert texts(notes) == (2 if status == 0 else 3)


def test_history_is_newest_first_with_tags_and_a_limit(notes: Any) -> None:
    assert notes(*ON, "tag", "create", "a").exit_code == 0
    assert notes(*ON, "add", "more").exit_code == 0
    lines = notes(*ON, "history").stdout.splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == [
        "documents 3: write",
        "documents 2: write  [a]",
        "documents 1: write",
    ]
    assert notes(*ON, "history", "--limit", "1").stdout.splitlines() == lines[:1]
    (entry,) = notes.data(*ON, "history", "-l", "1")["results"]
    assert (entry["source"], entry["part"], entry["version"], entry["tags"]) == ("notes", "documents", 3, [])


def test_migrate_lists_its_steps_and_takes_them(notes: Any) -> None:
    notes.server.age(PLACE)
    refused = notes(*ON, "list")
    assert (refused.exit_code, "haiku-rag migrate" in refused.stderr) == (1, True)
    step = "version 1: what the storage in memory has today\n"
    planned = notes(*ON, "--read-only", "migrate", "--dry-run")
    assert (planned.exit_code, planned.stdout, planned.stderr) == (0, step, "")
    assert notes(*ON, "list").exit_code == 1
    found = notes.data(*ON, "migrate", "--dry-run")
    assert found["report"] == {"source": "notes", "dry_run": True}
    assert [(entry["source"], entry["version"]) for entry in found["results"]] == [("notes", 1)]
    assert notes(*ON, "migrate").stdout == step
    again = notes(*ON, "migrate")
    assert (again.exit_code, again.stdout) == (0, "")
    assert again.stderr == "Database 'notes' has the current schema; there is nothing to do.\n"
    assert texts(notes) == 2


COMMANDS = (
    "vacuum",
    "create-index",
    "tag create a",
    "tag list",
    "tag delete a",
    "tag restore a --yes",
    "history",
    "migrate",
)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in ("tag list", "history")])
def test_what_writes_refuses_read_only(notes: Any, command: str) -> None:
    result = notes(*ON, "--read-only", *command.split())
    assert result.exit_code == 1
    assert "writes, and --read-only was given" in result.stderr


def test_what_only_looks_works_read_only(notes: Any) -> None:
    for command in ("tag list", "history"):
        assert notes(*ON, "--read-only", *command.split()).exit_code == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_an_engine_that_does_not_offer_it_says_so_in_one_sentence(notes: Any, command: str) -> None:
    places = {"server": notes.server_name, "databases": {"notes": PLACE}}
    (notes.folder / "haiku.rag.yaml").write_text(yaml.safe_dump({"memory_many": places}))
    result = notes(*command.split())
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith(" is not offered by storage 'memory-many', which holds database 'notes'.\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_database_of_another_embedding_is_looked_after_all_the_same(notes: Any, command: str) -> None:
    assert notes(*ON, "tag", "create", "b").exit_code == 0
    notes.configure("notes", embeddings={"model": {"provider": "hash", "vector_dim": 16}})
    assert notes("add", "more").exit_code == 1
    assert notes(*command.replace("delete a", "delete b").replace("restore a", "restore b").split()).exit_code == 0


@pytest.mark.parametrize(
    ("command", "method"),
    [
        ("vacuum", "vacuum"),
        ("create-index", "create_index"),
        ("tag create a", "create_tag"),
        ("tag delete a", "delete_tag"),
        ("tag restore a --yes", "restore_tag"),
        ("history", "history"),
    ],
)
def test_an_interruption_says_that_the_database_is_whole(
    notes: Any, monkeypatch: pytest.MonkeyPatch, command: str, method: str
) -> None:
    interrupt(monkeypatch, HaikuRAG, method)
    result = notes(*ON, *command.split())
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "Interrupted; database 'notes' is whole, and can be used at once.\n"


def test_an_interrupted_migration_says_how_to_go_on(notes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def migrate(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("haiku.rag.client.migrate", migrate)
    result = notes(*ON, "migrate")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == (
        "Interrupted; database 'notes' is whole, at one of the versions. Go on with the same command.\n"
    )


def test_a_failure_tells_no_location(notes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def vacuum(*_: Any, **__: Any) -> None:
        raise StorageError("no room at memory://secret-host/notes")

    monkeypatch.setattr(MemoryDatabase, "vacuum", vacuum)
    result = notes(*ON, "vacuum")
    assert result.exit_code == 1
    assert "secret-host" not in result.output


@pytest.fixture
def lance(shell: Any) -> Any:
    """A command line with LanceDB as well."""
    from haiku.rag.storage.lancedb import plugin

    shell.use(plugin)
    return shell


def test_over_lancedb_a_tag_goes_through_its_whole_life(lance: Any) -> None:
    at = ("--db", "notes.lancedb")
    assert lance("init", *at).exit_code == 0
    assert lance("add", "They wait.", *at).exit_code == 0
    assert lance("tag", "create", "spring", *at).exit_code == 0
    assert lance("add", "They land.", *at).exit_code == 0
    assert [len(lance.data("list", *at, *more)["results"]) for more in ((), ("--at", "spring"))] == [2, 1]
    (tag,) = lance.data("tag", "list", *at)["results"]
    assert (tag["source"], tag["name"], tag["complete"]) == ("notes", "spring", True)
    entries = lance.data("history", *at)["results"]
    assert {entry["source"] for entry in entries} == {"notes"}
    assert {name for entry in entries for name in entry["tags"]} == {"spring"}
    before = lance.data("tag", "restore", "spring", "--yes", *at)["results"][0]["before"]
    assert len(lance.data("list", *at)["results"]) == 1
    assert lance("tag", "restore", before, "--yes", *at).exit_code == 0
    assert len(lance.data("list", *at)["results"]) == 2
    for name in ("spring", before):
        assert lance("tag", "delete", name, *at).exit_code == 0
    result = lance("tag", "create", "no name", *at)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


def test_over_lancedb_vacuum_and_create_index_report_what_they_did(lance: Any) -> None:
    at = ("--db", "notes.lancedb")
    assert lance("init", *at).exit_code == 0
    for number in range(3):
        assert lance("add", f"They wait {number}.", "--uri", "note:1", *at).exit_code == 0
    planned = lance.data("vacuum", "--dry-run", *at)
    assert {step["status"] for step in planned["results"]} <= {"planned", "nothing to do"}
    done = lance("vacuum", "--retention-seconds", "0", *at)
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == len(planned["results"])
    assert " failed" not in done.stdout
    indexed = lance("create-index", *at)
    assert indexed.exit_code == 0
    assert indexed.stdout.startswith("index ")
    assert [hit["source"] for hit in lance.data("search", "wait 2", *at)["results"]] == ["notes"]


def test_over_lancedb_an_old_database_is_migrated(lance: Any) -> None:
    with zipfile.ZipFile(OLD) as archive:
        archive.extractall(lance.folder)
    (lance.folder / "db").rename(lance.folder / "old.lancedb")
    at = ("--db", "old.lancedb")
    refused = lance("info", *at)
    assert (refused.exit_code, "haiku-rag migrate" in refused.stderr) == (1, True)
    planned = lance("migrate", "--dry-run", *at)
    assert (planned.exit_code, planned.stdout.startswith("version 2: ")) == (0, True)
    assert lance("migrate", *at).stdout == planned.stdout
    assert lance("migrate", *at).stderr == "Database 'old' has the current schema; there is nothing to do.\n"
    assert lance("tag", "list", *at).exit_code == 0
