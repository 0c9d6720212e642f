"""Closed streams, control characters and addresses that hold secrets."""

import io
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest

from haiku.rag.cli.output import open_closed_streams, print_json

PROGRAM = [sys.executable, "-m", "haiku.rag.cli"]


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.mark.parametrize(("closed", "status"), [((1,), 0), ((2,), 0), ((0, 1, 2), 0)])
def test_a_command_works_whatever_streams_are_closed(tmp_path: Path, closed: tuple[int, ...], status: int) -> None:
    done = subprocess.run(
        [*PROGRAM, "plugins", "list"],
        cwd=tmp_path,
        capture_output=True,
        preexec_fn=partial(_close, *closed),
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, b"")


def test_a_closed_stream_is_replaced_and_an_open_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = io.StringIO()
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", kept)
    open_closed_streams()
    sys.stderr.write("\udcff lost")
    assert (sys.stdin.read(), sys.stdout) == ("", kept)
    sys.stdin.close()
    sys.stderr.close()


def test_json_holds_no_control_character_and_keeps_every_one(capfdbinary: Any) -> None:
    text = "".join(map(chr, range(160))) + "\u202e日"
    with click.Context(click.Command("x")):
        print_json({"text": text})
    printed = capfdbinary.readouterr().out.decode()
    assert json.loads(printed) == {"text": text}
    assert not [char for char in printed if (ord(char) < 32 and char != "\n") or 127 <= ord(char) < 160]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_url_that_cannot_be_read_is_told_without_its_secrets(shell: Any, options: tuple[str, ...]) -> None:
    shell.configure("a")
    shell.fill("a")
    result = shell("add-src", "gopher://user:hunter2@host/x?token=sesame#part", *options)
    assert result.exit_code == 1
    assert "gopher://host/x" in result.output
    assert not [secret for secret in ("hunter2", "sesame") if secret in result.output]


LOUD = """
print("noise at import")
from haiku.rag.plugins import CommandRecord, hookimpl

@hookimpl
def haiku_rag_register_command():
    print("noise at registering")
    return [CommandRecord(name="loud", summary="s", factory="loud_command:command")]

@hookimpl
def haiku_rag_resolve_scope(config, selector):
    print("noise while resolving")
"""
LOUD_COMMAND = """
import click
from haiku.rag.cli.runner import run
print("noise of a command")

async def work():
    print("noise at work")
    return "data"

@click.command()
def command():
    click.echo(run(work))
"""


def test_what_plugins_print_does_not_stand_among_the_data(tmp_path: Path, process: Any) -> None:
    info = tmp_path / "loud-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[haiku_rag]\nloud = loud_plugin\n")
    (tmp_path / "loud_plugin.py").write_text(LOUD)
    (tmp_path / "loud_command.py").write_text(LOUD_COMMAND)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = process("loud", PYTHONPATH=path)
    assert done.stdout.split() == [b"data"]
    for noise in (b"at import", b"at registering", b"of a command", b"at work"):
        assert b"noise " + noise in done.stderr
    listed = process("plugins", "list", "--json", PYTHONPATH=path)
    assert "loud" in [plugin["name"] for plugin in json.loads(listed.stdout)["results"]]
