"""`haiku-rag download-models` with a reranker whose model is a file in a folder."""

import io
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from haiku.rag.cli.transfers import transfers
from haiku.rag.client import ModelDownload
from haiku.rag.plugins import RerankerRecord, hookimpl
from haiku.rag.testing import FetchingReranker

SIZE = 20_000


class Plugin:
    @hookimpl
    def haiku_rag_register_reranker(self) -> Iterable[RerankerRecord]:
        yield RerankerRecord(
            name="fetching", summary="Fetched", factory="haiku.rag.testing.fetching_reranker:FetchingReranker"
        )


@pytest.fixture
def fetching(shell: Any, tmp_path: Path) -> Any:
    """A command line whose configuration names a model that is not there yet."""
    (tmp_path / "weights.bin").write_bytes(bytes(SIZE))
    configure(shell, "weights.bin")
    shell.use(Plugin())
    return shell


def configure(shell: Any, name: str) -> None:
    shell.configure("notes", "other", reranking={"model": {"provider": "fetching", "name": name}})


def fetched(tmp_path: Path) -> Path:
    return tmp_path / "data/haiku.rag/models/weights.bin"


def test_each_model_is_fetched_with_a_line_and_no_database_is_opened(fetching: Any, tmp_path: Path) -> None:
    result = fetching("download-models")
    assert result.exit_code == 0
    assert result.stdout == (
        "embedder 'hash': needs no download.\nreranker 'fetching' (weights.bin): fetched, 20.0 kB.\n"
    )
    assert fetched(tmp_path).read_bytes() == bytes(SIZE)
    assert fetching.server.states == {}


def test_without_a_terminal_a_line_tells_of_each_tenth(fetching: Any) -> None:
    lines = fetching("download-models").stderr.splitlines()
    assert len(lines) == 11
    assert (lines[0], lines[-1]) == (
        "Fetching weights.bin: 0 bytes of 20.0 kB",
        "Fetching weights.bin: 20.0 kB of 20.0 kB",
    )


def test_what_is_there_is_said_and_not_fetched_again(fetching: Any) -> None:
    fetching("download-models")
    result = fetching("download-models")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "reranker 'fetching' (weights.bin): is there already.\n" in result.stdout


def test_as_json_it_is_one_document(fetching: Any) -> None:
    result = fetching("download-models", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "results": [
            {
                "kind": "embedder",
                "provider": "hash",
                "model": "",
                "outcome": "not_needed",
                "reason": "",
                "bytes": 0,
            },
            {
                "kind": "reranker",
                "provider": "fetching",
                "model": "weights.bin",
                "outcome": "fetched",
                "reason": "",
                "bytes": SIZE,
            },
        ],
        "report": {"fetched": 1, "present": 0, "not_needed": 1, "failed": 0},
    }


def test_one_that_fails_is_named_with_its_reason(fetching: Any) -> None:
    configure(fetching, "nowhere.bin")
    result = fetching("download-models")
    assert result.exit_code == 1
    assert "embedder 'hash': needs no download.\nreranker 'fetching' (nowhere.bin): could not be fetched.\n" in (
        result.stdout
    )
    reason = "model 'nowhere.bin' could not be fetched: No such file or directory."
    assert result.stderr.splitlines() == [
        f"Failed: reranker 'fetching' (nowhere.bin): {reason}",
        "Error: 1 of 2 models could not be fetched; the reasons are above.",
    ]


def test_interrupted_it_says_so_and_goes_on_when_it_is_run_again(
    fetching: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = FetchingReranker.downloads

    async def downloads(self: FetchingReranker) -> Any:
        steps = whole(self)
        yield await anext(steps)
        await steps.aclose()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(FetchingReranker, "downloads", downloads)
        result = fetching("download-models")
    assert result.exit_code == 130
    assert result.stdout == "embedder 'hash': needs no download.\n"
    assert "Interrupted; nothing half fetched will be used. Go on with the same command." in result.stderr
    assert not fetched(tmp_path).exists()
    assert fetching("download-models").exit_code == 0
    assert fetched(tmp_path).exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def step(part: str, done: int, total: int | None) -> ModelDownload:
    return ModelDownload(kind="reranker", provider="acme", part=part, done=done, total=total)


def test_a_terminal_is_shown_a_bar_for_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with transfers() as show:
        show(step("[bold]weights\x1b", 0, 2000))
        show(step("[bold]weights\x1b", 1000, 2000))
        show(step("words", 5, None))
    assert "[bold]weights" in terminal.getvalue()
    assert "1.0/2.0 kB" in terminal.getvalue()
    assert "words" in terminal.getvalue()


def test_a_part_of_unknown_size_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with transfers() as show:
        show(step("words", 0, None))
        show(step("words", 5, None))
    assert capsys.readouterr().err == "Fetching words: 0 bytes\n"
