"""What core's tests share."""

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

ENVIRONMENT = ("HAIKU_RAG_CONFIG_PATH", "HAIKU_RAG_NO_PLUGINS", "HAIKU_RAG_DISABLE_PLUGINS")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the developer's own decides a test."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Callable[[str, str], EntryPoint]]:
    """Writes a module of a test's own; gives an entry point for it, called as the module."""
    folder = tmp_path / "modules"
    folder.mkdir()
    before = set(sys.modules)
    sys.path.insert(0, str(folder))

    def write(name: str, text: str) -> EntryPoint:
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        return EntryPoint(name=name, value=name, group="haiku_rag")

    yield write
    sys.path.remove(str(folder))
    for name in set(sys.modules) - before:
        if (folder / f"{name}.py").exists():
            del sys.modules[name]
