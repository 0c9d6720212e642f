"""The command line as a process, over the installed storage engine, embedder and converters."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

for distribution in ("haiku.rag.storage.lancedb", "haiku.rag.embedders.local", "haiku.rag.converters.documents"):
    pytest.importorskip(distribution)

COMMAND = [sys.executable, "-m", "haiku.rag.cli"]
TEXT = "# Thủy triều\n\nThe moon pulls the [/red] tide. テスト \x1b[31m"


@pytest.fixture
def filled(process: Any, tmp_path: Path) -> Any:
    """A process runner in a folder with one database that holds two documents."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "tide.md").write_text(TEXT, encoding="utf-8")
    (folder / "hill.txt").write_text("A hill in the north.")
    assert process("init", "--db", "own.lancedb").returncode == 0
    done = process("add-src", "texts", "--db", "own.lancedb")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"2 documents are stored in 'own'.\n", b"")
    return process


def test_the_whole_way_with_real_components(filled: Any, tmp_path: Path) -> None:
    done = filled("search", "what moves the sea", "--db", "own.lancedb", "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    document = json.loads(done.stdout.decode("utf-8"))
    assert document["results"][0]["document_title"] == "Thủy triều"
    assert document["report"]["databases"][0]["status"] == "ok"
    listed = json.loads(filled("list", "--db", "own.lancedb", "--json").stdout)["results"]
    assert {entry["source"] for entry in listed} == {"own"}
    assert f"location: {tmp_path / 'own.lancedb'}".encode() in filled("info", "--db", "own.lancedb").stdout
    assert filled("delete", listed[0]["id"], "--db", "own.lancedb").returncode == 0
    assert len(json.loads(filled("list", "--db", "own.lancedb", "--json").stdout)["results"]) == 1


@pytest.mark.parametrize(
    "env", [{"PYTHONIOENCODING": "cp1252"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}, {"NO_COLOR": "1", "COLUMNS": "10"}]
)
def test_no_locale_and_no_terminal_keeps_it_from_printing(filled: Any, env: dict[str, str]) -> None:
    done = filled("search", "テスト tide", "--db", "own.lancedb", "--explain", **env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"The moon pulls the [/red] tide." in done.stdout
    assert b"\x1b" not in done.stdout
    as_json = filled("search", "tide", "--db", "own.lancedb", "--json", **env)
    assert "テスト" in json.loads(as_json.stdout.decode("utf-8"))["results"][0]["content"]
    assert filled("--help", **env).returncode == 0
    unknown = filled("テスト", **env)
    assert (unknown.returncode, unknown.stderr.count(b"Error: no command ")) == (2, 1)


def test_a_mistyped_path_creates_nothing(process: Any, tmp_path: Path) -> None:
    for command in (["list"], ["info"], ["search", "x"], ["get", "x"]):
        done = process(*command, "--db", "nope.lancedb")
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"Error: " in done.stderr
        assert b"haiku-rag init --db" in done.stderr
        assert b"Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_ends_it_quietly(filled: Any, tmp_path: Path) -> None:
    for arguments in (["plugins", "show", "documents"], ["list", "--db", "own.lancedb", "--json"], ["--help"]):
        read, write = os.pipe()
        os.close(read)
        process = subprocess.Popen([*COMMAND, *arguments], stdout=write, stderr=subprocess.PIPE, cwd=tmp_path)
        os.close(write)
        assert process.communicate()[1] == b""
        assert process.returncode in (0, 1)


def test_ctrl_c_leaves_what_was_committed_and_says_so(process: Any, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(400):
        (folder / f"{number:03}.md").write_text(f"# Text {number}\n\n" + f"The tide number {number}. " * 40)
    assert process("init", "--db", "own.lancedb").returncode == 0
    command = [*COMMAND, "add-src", "many", "--db", "own.lancedb"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "own.lancedb").rglob("chunks.lance/data/*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    output, errors = running.communicate(timeout=60)
    assert (running.returncode, output) == (130, b"")
    assert errors.startswith(b"Interrupted; what was committed stays: ")
    assert errors.count(b"\n") == 1
    stored = len(json.loads(process("list", "--db", "own.lancedb", "--json").stdout)["results"])
    assert stored % 32 == 0
    assert stored < 400


def test_progress_is_drawn_on_a_terminal_and_nowhere_else(process: Any, tmp_path: Path) -> None:
    (tmp_path / "[bold]a.md").write_text("text")
    assert process("init", "--db", "own.lancedb").returncode == 0
    ours, theirs = pty.openpty()
    command = [*COMMAND, "add-src", "[bold]a.md", "--db", "own.lancedb"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path, env={**os.environ, "TERM": "xterm"}
    )
    output, _ = running.communicate(timeout=60)
    os.close(theirs)
    drawn = os.read(ours, 100_000)
    os.close(ours)
    assert output == b"1 document is stored in 'own'.\n"
    assert b"[bold]a.md" in drawn


def test_databases_of_a_configuration_are_searched_as_one(process: Any, tmp_path: Path) -> None:
    (tmp_path / "haiku.rag.yaml").write_text(
        "lancedb: {databases: {sea: sea.lancedb, land: land.lancedb, gone: gone.lancedb}}"
    )
    for name, text in (("sea", "The tide of the sea."), ("land", "A hill in the north.")):
        assert process("--db-name", name, "init").returncode == 0
        assert process("--db-name", name, "add", text).returncode == 0
    done = process("search", "tide", "--on-unavailable", "skip")
    assert done.returncode == 0
    assert b"   database: sea\n" in done.stdout
    assert done.stderr.startswith(b"Warning: database 'gone' was left out (missing): ")
    assert str(tmp_path).encode() not in done.stdout + done.stderr
    assert not (tmp_path / "gone.lancedb").exists()
    assert process("search", "tide").returncode == 1
    assert process("list").returncode == 2
