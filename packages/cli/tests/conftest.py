"""What the command line's tests share: command lines over databases in memory, and processes over real ones."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from haiku.rag.cli import plugin as cli_plugin
from haiku.rag.cli.app import build_group
from haiku.rag.testing import MemoryServer, memory_server, testing_kernel, testing_plugin
from haiku.rag.testing import plugin as memory_plugin

ABSENT = object()


class Shell:
    """A command line over databases in memory: `shell("search", "x")` runs a command and gives click's result."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server_name = uuid.uuid4().hex
        self.configure()
        self.use()

    @property
    def server(self) -> MemoryServer:
        """Where the databases live."""
        return memory_server(self.server_name)

    def use(self, *plugins: object) -> None:
        """Compose the command line anew, with these plugins beside those of every test."""
        own = testing_plugin(cli_plugin, name="cli", distribution="haiku-rag-cli", version="0.1.0")
        memory = testing_plugin(memory_plugin, name="memory", distribution="haiku-rag-memory", version="0.1.0")
        self.kernel = testing_kernel(own, memory, *plugins)
        self.group = build_group(kernel=self.kernel)

    def configure(self, *names: str, **sections: Any) -> None:
        """Write the configuration: these databases, and these sections of core."""
        databases = {name: f"memory://secret-host/{name}" for name in names}
        data = {"memory": {"server": self.server_name, "databases": databases}, **sections}
        (self.folder / "haiku.rag.yaml").write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")

    def __call__(self, *arguments: str, input: str | bytes | None = None, env: Mapping[str, str] = {}) -> Result:
        return CliRunner().invoke(self.group, list(arguments), input=input, env=dict(env))

    def data(self, *arguments: str) -> dict[str, Any]:
        """Run a command with `--json`, expect it to succeed, and give its document."""
        result = self(*arguments, "--json")
        assert (result.exit_code, result.stderr) == (0, "")
        document: dict[str, Any] = json.loads(result.stdout_bytes.decode("utf-8"))
        return document

    def fill(self, name: str, *texts: str) -> None:
        """Create a database and store texts in it."""
        assert self("--db-name", name, "init").exit_code == 0
        for text in texts:
            assert self("--db-name", name, "add", text).exit_code == 0


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("HAIKU_RAG_CONFIG_PATH", "HAIKU_RAG_DEBUG", "HAIKU_RAG_NO_PLUGINS", "HAIKU_RAG_DISABLE_PLUGINS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A command line over databases in memory."""
    return Shell(tmp_path)


Process = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Runs `python -m haiku.rag.cli` with what is installed, in a folder of its own."""

    def run(*arguments: str, input: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "haiku.rag.cli", *arguments]
        environment = {**os.environ, **env}
        return subprocess.run(
            command, input=input, capture_output=True, cwd=tmp_path, env=environment, timeout=120, check=False
        )

    return run
