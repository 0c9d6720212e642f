"""What the tests share: the bundled collections measured once, and small folders in the BEIR layout."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from haiku.rag.evals.commands.group import command

Shell = Callable[..., Result]
Beir = Callable[..., Path]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that every test may use: what is in it is made once."""
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration and no cache of the user's."""
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("HAIKU_RAG_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def shell() -> Shell:
    """`haiku-rag eval` without the command line around it; an unexpected error comes out as it is."""

    def run(*arguments: object, fails: bool = False) -> Result:
        result = CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=fails)
        assert (result.exit_code != 0) == fails, result.output
        return result

    return run


@pytest.fixture(scope="session")
def measured(workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three ways of searching the bundled collections, everywhere."""
    out = tmp_path_factory.mktemp("run") / "run.json"
    ways = ["--strategy", "cosine", "--strategy", "calibrated", "--strategy", "rrf"]
    result = CliRunner().invoke(
        command, ["run", *ways, "--workspace", str(workspace), "--out", str(out)], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture
def beir(tmp_path: Path) -> Beir:
    """Writes a dataset: texts of passages by id, texts of questions, and what answers each."""

    def write(
        name: str, passages: Mapping[str, str], questions: Mapping[str, str], answers: Mapping[str, Mapping[str, int]]
    ) -> Path:
        folder = tmp_path / "datasets" / name
        folder.mkdir(parents=True)
        (folder / "corpus.jsonl").write_text(
            "\n".join(json.dumps({"_id": key, "text": text}) for key, text in passages.items())
        )
        (folder / "queries.jsonl").write_text(
            "\n".join(json.dumps({"_id": key, "text": text}) for key, text in questions.items())
        )
        rows = [
            f"{question}\t{passage}\t{grade}" for question, found in answers.items() for passage, grade in found.items()
        ]
        (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]))
        return folder

    return write


@pytest.fixture
def pets(beir: Beir) -> Path:
    """Three passages and two questions."""
    return beir(
        "pets",
        {"cat": "A cat sleeps most of the day.", "dog": "A dog wants a walk.", "fish": "A fish needs clean water."},
        {"q1": "what is sleeping", "q2": "who needs water that is clean"},
        {"q1": {"cat": 2}, "q2": {"fish": 1}},
    )
