"""`doctor`, and what `info` says of language and upkeep."""

import hashlib
import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from haiku.rag.cli.commands.info import upkeep_line
from haiku.rag.errors import StorageError
from haiku.rag.models import UpkeepReport
from haiku.rag.models.upkeep import UpkeepStep

HASH = {"model": {"provider": "hash", "name": "words", "vector_dim": 64}}


@pytest.fixture
def filled(shell: Any) -> Any:
    """A command line over one database in memory that holds a text."""
    shell.configure("notes", embeddings=HASH)
    shell.fill("notes", "a text about search")
    return shell


@pytest.fixture
def silent() -> Iterator[str]:
    """The endpoint of a server that accepts and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def tree(root: Path) -> dict[str, str]:
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_doctor_says_where_the_database_is_and_gives_a_line_for_each_check(filled: Any) -> None:
    result = filled("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:2] == ["database: notes", "location: memory://secret-host/notes"]
    assert "ok      database: The database can be opened." in lines
    assert lines[-1] == "0 failed, 0 warnings, 0 fixed"


def test_doctor_prints_one_json_document(filled: Any) -> None:
    data = filled.data("doctor")
    assert {finding["source"] for finding in data["results"]} == {"notes"}
    assert data["report"] == {
        "source": "notes",
        "location": "memory://secret-host/notes",
        "failed": 0,
        "warnings": 0,
        "fixed": 0,
    }


def test_a_failed_check_ends_with_status_1_and_still_gives_everything(filled: Any) -> None:
    filled.server.fail("memory://secret-host/notes", StorageError("the disk is broken"), "check")
    result = filled("doctor", "--json")
    assert result.exit_code == 1
    assert result.stderr == "Error: 1 of 4 checks of 'notes' failed.\n"
    assert json.loads(result.stdout)["report"]["failed"] == 1


def test_a_missing_database_is_reported_with_what_makes_it(shell: Any) -> None:
    shell.configure("notes", embeddings=HASH)
    result = shell("doctor")
    assert result.exit_code == 1
    assert "failed  database: database 'notes' does not exist. Create it with: haiku-rag" in result.stdout
    assert "remedy" not in result.stdout


def test_a_warning_leaves_the_status_at_0_and_says_what_to_do(filled: Any) -> None:
    filled.configure("notes", embeddings={"model": {**HASH["model"], "name": "others"}})
    result = filled("doctor")
    assert result.exit_code == 0
    assert "warning embedding: " in result.stdout
    assert "        remedy: haiku-rag rebuild --embed-only" in result.stdout
    assert result.stdout.endswith("0 failed, 1 warnings, 0 fixed\n")


def test_doctor_shows_some_of_the_ids_that_are_concerned(filled: Any) -> None:
    state = filled.server.states["memory://secret-host/notes"]
    (stored,) = state.in_order()
    stored.parts.vectors[:] = float("nan")
    result = filled("doctor")
    assert result.exit_code == 1
    assert f"        for example: {stored.row.id}" in result.stdout


def test_doctor_works_on_one_live_database_and_with_read_only_fixes_nothing(shell: Any) -> None:
    shell.configure("a", "b", embeddings=HASH)
    assert shell("doctor").exit_code == 2
    assert shell("--db-name", "a", "--read-only", "doctor", "--fix").exit_code == 1
    assert shell("--db-name", "a", "--read-only", "doctor", "--probe").exit_code == 1
    assert shell("--db-name", "a", "init").exit_code == 0
    assert shell("--db-name", "a", "doctor", "--fix").exit_code == 0


def test_doctor_masks_what_authorises(shell: Any) -> None:
    location = "memory://user:password@host/a?token=abc"
    shell.configure(memory={"server": shell.server_name, "databases": {"a": location}}, embeddings=HASH)
    for arguments in (["doctor"], ["doctor", "--json"]):
        result = shell(*arguments)
        assert "memory://***@host/a?token=**********" in result.stdout
        assert "password" not in result.output
        assert "abc" not in result.output


def test_doctor_changes_nothing_unless_it_is_told_to(process: Any, tmp_path: Path) -> None:
    assert process("init", "--db", "notes.lancedb").returncode == 0
    assert process("add", "a text about search", "--db", "notes.lancedb").returncode == 0
    before = tree(tmp_path)
    result = process("doctor", "--db", "notes.lancedb")
    assert (result.returncode, result.stderr) == (0, b"")
    assert tree(tmp_path) == before
    (spoilt,) = (tmp_path / "notes.lancedb" / "chunks.lance" / "data").iterdir()
    spoilt.unlink()
    result = process("doctor", "--db", "notes.lancedb")
    assert result.returncode == 1
    assert b"failed  tables: These tables could not be read to their end: 'chunks'" in result.stdout


def test_the_process_ends_in_time_and_tells_no_secret_when_a_store_never_answers(
    process: Any, tmp_path: Path, silent: str
) -> None:
    options = {"aws_access_key_id": "AKIATHEKEYID", "aws_secret_access_key": "the-secret-key", "aws_endpoint": silent}
    section = {"databases": {"far": "s3://private-bucket/far"}, "storage_options": {**options, "allow_http": "true"}}
    settings = {"lancedb": section, "search": {"timeout_s": 1}}
    (tmp_path / "haiku.rag.yaml").write_text(json.dumps(settings), encoding="utf-8")
    for arguments, says in (
        (["doctor"], b"did not answer in time"),
        (["search", "x"], b"did not answer in time"),
        (["info"], b"did not answer in time"),
        (["settings"], b"far"),
    ):
        result = process(*arguments, HAIKU_RAG_DEBUG="1")
        shown = result.stdout + result.stderr
        assert says in shown
        assert b"AKIATHEKEYID" not in shown
        assert b"the-secret-key" not in shown
        if arguments[0] in {"search", "info"}:
            assert b"private-bucket" not in shown


def test_info_says_the_language_and_what_became_of_the_last_upkeep(process: Any) -> None:
    assert process("init", "--db", "notes.lancedb").returncode == 0
    assert process("add", "a text about search", "--db", "notes.lancedb").returncode == 0
    lines = process("info", "--db", "notes.lancedb").stdout.decode().splitlines()
    assert "language: none, words are not stemmed" in lines
    assert [line for line in lines if line.startswith("last upkeep: 20")]


def test_the_line_on_upkeep_names_what_was_done_and_what_failed() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    done = UpkeepStep(name="text indexes", status="done")
    failed = UpkeepStep(name="vector index", status="failed", detail="the disk is full")
    told = [upkeep_line(UpkeepReport(finished_at=moment, steps=steps)) for steps in ([], [done], [done, failed])]
    assert told == [
        "2026-01-02 03:04:05, nothing to do",
        "2026-01-02 03:04:05, text indexes",
        "2026-01-02 03:04:05, text indexes; vector index failed (the disk is full)",
    ]
