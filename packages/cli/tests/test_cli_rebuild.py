"""`haiku-rag rebuild` over databases in memory."""

import json
from typing import Any

import pytest

from haiku.rag.client import HaikuRAG, RebuildStep
from haiku.rag.errors import EmbeddingError
from haiku.rag.testing import HashEmbedder, MemoryDatabase


@pytest.fixture
def notes(shell: Any) -> Any:
    """A command line over a database with two documents."""
    shell.configure("notes", "other")
    shell.fill("notes", "They wait.", "They sail.")
    return shell


def dimension_of(shell: Any, name: str = "notes") -> int:
    dimension: int = shell.server.states[f"memory://secret-host/{name}"].identity.dimension
    return dimension


def use_dimension(shell: Any, dimension: int) -> None:
    shell.configure("notes", "other", embeddings={"model": {"provider": "hash", "vector_dim": dimension}})


@pytest.mark.parametrize(
    ("flags", "mode"),
    [([], "full"), (["--full"], "full"), (["--rechunk"], "rechunk"), (["--embed-only"], "embed-only")],
)
def test_every_mode_says_what_was_rebuilt(notes: Any, flags: list[str], mode: str) -> None:
    result = notes("--db-name", "notes", "rebuild", *flags)
    assert (result.exit_code, result.stdout) == (0, f"Rebuilt 2 documents of 'notes' ({mode}).\n")
    assert result.stderr == ""


def test_as_json_it_is_one_document(notes: Any) -> None:
    assert notes.data("--db-name", "notes", "rebuild", "--rechunk") == {
        "results": [{"source": "notes", "mode": "rechunk", "rebuilt": 2, "left": 0, "failed": 0}],
        "report": {"source": "notes", "steps": []},
    }


def test_two_modes_at_once_are_refused(notes: Any) -> None:
    result = notes("--db-name", "notes", "rebuild", "--rechunk", "--embed-only")
    assert result.exit_code == 2
    assert "--rechunk and --embed-only were given. Give one of them." in result.stderr


def test_it_needs_one_database_that_may_be_written(notes: Any) -> None:
    result = notes("rebuild")
    assert result.exit_code == 2
    assert "rebuilding needs one database, and several are configured: 'notes', 'other'" in result.stderr
    assert notes("--read-only", "--db-name", "notes", "rebuild").exit_code == 1


def test_another_embedding_is_taken_over(notes: Any) -> None:
    use_dimension(notes, 16)
    assert notes("--db-name", "notes", "add", "more").exit_code == 1
    result = notes("--db-name", "notes", "rebuild", "--embed-only")
    assert (result.exit_code, result.stdout) == (0, "Rebuilt 2 documents of 'notes' (embed-only).\n")
    assert dimension_of(notes) == 16
    assert notes("--db-name", "notes", "add", "more").exit_code == 0


def poison(monkeypatch: pytest.MonkeyPatch, word: str, error: BaseException) -> None:
    """Let the embedder fail for texts with a word."""
    embed = HashEmbedder.embed_documents

    async def embed_documents(self: HashEmbedder, contents: Any) -> Any:
        if any(word in str(content) for content in contents):
            raise error
        return await embed(self, contents)

    monkeypatch.setattr(HashEmbedder, "embed_documents", embed_documents)


def test_a_document_that_fails_is_named_and_the_status_is_one(notes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use_dimension(notes, 16)
    poison(monkeypatch, "sail", EmbeddingError("no vector for it."))
    result = notes("--db-name", "notes", "rebuild", "--rechunk")
    assert (result.exit_code, result.stdout) == (1, "Rebuilt 1 document of 'notes' (rechunk).\n")
    note, failed, error = result.stderr.splitlines()
    assert note.startswith("Note: database 'notes' keeps its embedding, because documents failed: 1.")
    assert failed.startswith("Failed: ")
    assert failed.endswith(": no vector for it.")
    assert error == "Error: 1 of the documents could not be rebuilt; the reasons are above."
    assert dimension_of(notes) == 64
    result = notes("--db-name", "notes", "rebuild", "--rechunk", "--json")
    assert result.exit_code == 1
    steps = json.loads(result.stdout_bytes)["report"]["steps"]
    assert [step["outcome"] for step in steps] == ["note", "failed", "note"]


def test_what_was_left_and_what_came_from_the_store_is_named(notes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(self: MemoryDatabase, document: object, *, seen: object) -> None:
        """Another writer was first."""

    monkeypatch.setattr(MemoryDatabase, "rewrite", gone)
    result = notes("--db-name", "notes", "rebuild")
    assert result.stdout == "Rebuilt 0 documents of 'notes' (full).\n"
    assert result.exit_code == 0
    assert result.stderr.count(": another writer has changed or deleted it meanwhile.\n") == 2


def test_a_source_that_is_gone_is_named(shell: Any) -> None:
    shell.configure("notes")
    path = shell.folder / "a.md"
    path.write_text("They wait.")
    assert shell("--db-name", "notes", "init").exit_code == 0
    assert shell("--db-name", "notes", "add-src", str(path)).exit_code == 0
    path.unlink()
    result = shell("--db-name", "notes", "rebuild")
    assert (result.exit_code, result.stdout) == (0, "Rebuilt 1 document of 'notes' (full).\n")
    assert result.stderr.startswith(f"From what is stored: {path.as_uri()}: its source could not be used")


def test_an_interruption_says_how_to_go_on(notes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rebuild = HaikuRAG.rebuild

    async def interrupted(self: HaikuRAG, mode: Any) -> Any:
        async for step in rebuild(self, mode):
            yield step
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(HaikuRAG, "rebuild", interrupted)
        result = notes("--db-name", "notes", "rebuild", "--rechunk")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "Interrupted; every document of 'notes' is whole. Go on with the same command.\n"
    result = notes("--db-name", "notes", "rebuild", "--rechunk")
    assert (result.exit_code, result.stdout) == (0, "Rebuilt 1 document of 'notes' (rechunk).\n")
    assert result.stderr.startswith("Note: the rebuild (rechunk) that was begun at ")


def test_an_error_before_anything_was_rebuilt_stands_alone(notes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(monkeypatch, "They", RuntimeError("broken"))
    result = notes("--db-name", "notes", "rebuild", "--rechunk")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: RuntimeError: broken.")


def test_reindex_says_so(notes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def reindexed(self: HaikuRAG, mode: Any) -> Any:
        yield RebuildStep(done=1, total=1, outcome="note", reason="every index was built again")

    monkeypatch.setattr(HaikuRAG, "rebuild", reindexed)
    result = notes("--db-name", "notes", "rebuild", "--reindex")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Built the indexes of 'notes' again.\n", "")
