"""Fetching the models that the configuration names."""

from collections.abc import Callable, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from haiku.rag.client import HaikuRAG, ModelDownload, download_models
from haiku.rag.config import AppConfig
from haiku.rag.contracts import Downloading, DownloadStep
from haiku.rag.plugins import EmbedderRecord, RerankerRecord, hookimpl
from haiku.rag.testing import DownloadingContract, FetchingReranker, OverlapReranker, testing_config
from haiku.rag.testing import plugin as memory_plugin

pytestmark = pytest.mark.anyio
SIZE = 5000


class Wrong(OverlapReranker):
    """One that reports what is no step."""

    async def downloads(self) -> Any:
        yield {"name": "weights", "done": -1}


class Unreachable(OverlapReranker):
    """One whose hub does not answer."""

    async def downloads(self) -> Any:
        yield DownloadStep(name="weights", done=1)
        raise ConnectionError("http://user:secret@hub.example refused")


class Twofold(OverlapReranker):
    """One of two parts, whose sizes nobody knows."""

    async def downloads(self) -> Any:
        for name in ("weights", "words"):
            yield DownloadStep(name=name, done=0)
            yield DownloadStep(name=name, done=7)


class Plugin:
    """Rerankers that download."""

    @hookimpl
    def haiku_rag_register_reranker(self) -> Iterable[RerankerRecord]:
        yield RerankerRecord(
            name="fetching", summary="Fetched", factory="haiku.rag.testing.fetching_reranker:FetchingReranker"
        )
        for kind in (Wrong, Unreachable, Twofold):
            yield RerankerRecord(
                name=kind.__name__.lower(), summary="A stand-in", factory=f"{__name__}:{kind.__name__}"
            )


class TwoEmbedders:
    """Two embedders that need no configuration."""

    @hookimpl
    def haiku_rag_register_embedder(self) -> Iterable[EmbedderRecord]:
        for name in ("one", "other"):
            yield EmbedderRecord(name=name, summary="A stand-in", factory=f"{__name__}:Wrong", standalone=True)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., AppConfig]:
    (tmp_path / "weights.bin").write_bytes(bytes(SIZE))

    def build(provider: str = "fetching", name: str = str(tmp_path / "weights.bin")) -> AppConfig:
        model = {"provider": provider, "name": name}
        data = {"storage": {"data_dir": str(tmp_path / "data")}, "reranking": {"model": model}}
        return testing_config(data, memory_plugin, Plugin())

    return build


async def outcomes(config: AppConfig) -> dict[str, ModelDownload]:
    """The last word on each model."""
    return {step.kind: step async for step in download_models(config) if step.outcome != "running"}


class TestFetchingReranker(DownloadingContract):
    @pytest.fixture
    def make(self, config: Callable[..., AppConfig]) -> Callable[[], Downloading]:
        return lambda: FetchingReranker(config())


async def test_each_configured_model_has_its_steps_and_an_outcome(config: Callable[..., AppConfig]) -> None:
    steps = [step async for step in download_models(config())]
    embedder, *of_reranker, last = steps
    assert (embedder.kind, embedder.provider, embedder.outcome) == ("embedder", "hash", "not_needed")
    assert [step.done for step in of_reranker] == [0, 1024, 2048, 3072, 4096, SIZE]
    assert {(step.outcome, step.total) for step in of_reranker} == {("running", SIZE)}
    assert {step.part for step in of_reranker} == {last.model}
    assert (last.kind, last.provider, last.outcome, last.done, last.reason) == (
        "reranker",
        "fetching",
        "fetched",
        SIZE,
        "",
    )


async def test_what_is_there_is_not_fetched_again(config: Callable[..., AppConfig]) -> None:
    await outcomes(config())
    steps = [step async for step in download_models(config())]
    assert [(step.outcome, step.done) for step in steps] == [("not_needed", 0), ("present", 0)]


async def test_the_bytes_of_all_parts_are_counted(config: Callable[..., AppConfig]) -> None:
    fetched = (await outcomes(config("twofold")))["reranker"]
    assert (fetched.outcome, fetched.done) == ("fetched", 14)


async def test_a_model_that_cannot_be_had_is_an_outcome_with_its_sentence(config: Callable[..., AppConfig]) -> None:
    failed = (await outcomes(config(name="nowhere.bin")))["reranker"]
    assert failed.outcome == "failed"
    assert failed.reason == "model 'nowhere.bin' could not be fetched: No such file or directory."


@pytest.mark.parametrize(("provider", "error"), [("unreachable", "ConnectionError"), ("wrong", "ValidationError")])
async def test_other_failures_are_named_by_their_type_only(
    config: Callable[..., AppConfig], provider: str, error: str
) -> None:
    failed = (await outcomes(config(provider)))["reranker"]
    assert (failed.outcome, failed.reason) == ("failed", f"reranker '{provider}' failed: {error}.")


async def test_an_unknown_provider_is_an_outcome_too(config: Callable[..., AppConfig]) -> None:
    failed = (await outcomes(config("fetcing")))["reranker"]
    assert "Did you mean 'fetching'?" in failed.reason


@pytest.mark.parametrize("plugins", [(), (TwoEmbedders(),)])
async def test_where_nothing_is_named_nothing_is_fetched(plugins: tuple[object, ...]) -> None:
    assert await outcomes(testing_config({}, *plugins)) == {}


async def test_other_embedders_are_fetched_where_databases_of_other_embeddings_are_searched(tmp_path: Path) -> None:
    others = [{"provider": "hash", "vector_dim": 12}, {"provider": "hush", "name": "x"}]
    data = {"embeddings": {"others": others}, "search": {"mixed_embedders": "allow"}}
    steps = [step async for step in download_models(testing_config(data, memory_plugin))]
    assert [(step.provider, step.outcome) for step in steps] == [
        ("hash", "not_needed"),
        ("hash", "not_needed"),
        ("hush", "failed"),
    ]
    refused = testing_config({"embeddings": {"others": others}}, memory_plugin)
    assert len([step async for step in download_models(refused)]) == 1


async def test_broken_off_nothing_half_fetched_is_left(config: Callable[..., AppConfig], tmp_path: Path) -> None:
    async with aclosing(download_models(config())) as steps:
        async for step in steps:
            if step.outcome == "running":
                break
    assert not (tmp_path / "data/models/weights.bin").exists()
    assert (await outcomes(config()))["reranker"].outcome == "fetched"


async def test_a_client_fetches_without_being_open_and_touches_no_database(
    config: Callable[..., AppConfig], tmp_path: Path
) -> None:
    client = HaikuRAG(config=config(), read_only=True)
    found = [step async for step in client.download_models()]
    assert found[-1].outcome == "fetched"
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["models"]
