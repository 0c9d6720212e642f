"""Fetching a model from a hub on the loopback interface, and finding it again."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import aclosing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from haiku.rag.client import download_models
from haiku.rag.config import AppConfig
from haiku.rag.contracts import Downloading, RerankCandidate
from haiku.rag.errors import RerankError
from haiku.rag.rerankers.sentence_transformers import plugin
from haiku.rag.rerankers.sentence_transformers import reranker as reranker_module
from haiku.rag.rerankers.sentence_transformers.hub import HubModel, seems_whole, unneeded
from haiku.rag.rerankers.sentence_transformers.library import library
from haiku.rag.rerankers.sentence_transformers.reranker import CrossEncoderReranker, create_sentence_transformers
from haiku.rag.rerankers.sentence_transformers.tracking import FetchStoppedError, Tracker
from haiku.rag.testing import DownloadingContract, testing_config
from haiku.rag.testing.reranker import ANSWER, PASSAGES, QUERY

pytestmark = pytest.mark.anyio
Settings = Callable[..., AppConfig]
Hub = Any  # the class of the fixture 'hub'
NAME = "acme/overlap"
MODEL = HubModel(repository=NAME)


@pytest.fixture
def overlap(hub: Hub, overlap_folder: Path) -> Hub:
    """A hub that has the overlap model."""
    hub.put_folder(NAME, overlap_folder)
    return hub


@pytest.fixture
def reranker(settings: Settings, overlap: Hub) -> CrossEncoderReranker:
    return create_sentence_transformers(settings(NAME))


async def best(reranker: CrossEncoderReranker) -> str:
    """The passage that comes first."""
    texts = [*PASSAGES, ANSWER]
    candidates = [RerankCandidate(text=text, source="db", chunk_id=text) for text in texts]
    return texts[(await reranker.rerank(QUERY, candidates, 1))[0][0]]


async def steps(reranker: CrossEncoderReranker) -> list[tuple[str, int, int | None]]:
    return [(step.name, step.done, step.total) async for step in reranker.downloads()]


def size(hub: Hub) -> int:
    return sum(map(len, hub.models[NAME].values()))


class TestDownloads(DownloadingContract):
    @pytest.fixture
    def make(self, overlap: Hub, settings: Settings) -> Callable[[], Downloading]:
        return lambda: create_sentence_transformers(settings(NAME, offline=True))


async def test_a_model_is_fetched_once_and_then_serves_without_the_hub(
    reranker: CrossEncoderReranker, overlap: Hub, settings: Settings
) -> None:
    assert (await steps(reranker))[-1] == (NAME, size(overlap), size(overlap))
    assert sorted(overlap.sent()) == sorted(overlap.models[NAME])
    asked = len(overlap.asked)
    assert await best(create_sentence_transformers(settings(NAME, offline=True))) == ANSWER
    assert len(overlap.asked) == asked
    assert await steps(reranker) == []
    assert len(overlap.sent()) == len(overlap.models[NAME])


async def test_what_is_missing_is_fetched_by_the_first_search(reranker: CrossEncoderReranker, overlap: Hub) -> None:
    assert await best(reranker) == ANSWER
    assert overlap.sent()


async def test_offline_a_missing_model_is_named_with_the_command_that_fetches_it(
    overlap: Hub, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "is set. Fetch it with: haiku-rag download-models"
    with pytest.raises(RerankError) as caught:
        await best(create_sentence_transformers(settings(NAME, offline=True)))
    assert str(caught.value) == (
        f"model '{NAME}' is not on this disk, and rerank_sentence_transformers.offline {command}"
    )
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(RerankError, match=f"and HF_HUB_OFFLINE {command}"):
        await best(create_sentence_transformers(settings(NAME)))
    assert overlap.asked == []


async def test_with_the_hub_switched_off_downloading_says_so(
    reranker: CrossEncoderReranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(RerankError, match="could not be fetched: HF_HUB_OFFLINE is set. Unset it and try again."):
        await steps(reranker)


async def test_a_broken_download_leaves_nothing_half_used_and_is_gone_on_with(
    reranker: CrossEncoderReranker, overlap: Hub, settings: Settings
) -> None:
    overlap.cut["model.safetensors"] = 5000
    with pytest.raises(RerankError, match=r"could not be fetched: the hub answered with status 502. Try again later."):
        await steps(reranker)
    assert MODEL.folder() is None
    with pytest.raises(RerankError, match="is not on this disk"):
        await best(create_sentence_transformers(settings(NAME, offline=True)))
    overlap.refusals.clear()
    assert await steps(reranker)
    assert await best(create_sentence_transformers(settings(NAME, offline=True))) == ANSWER


@pytest.mark.parametrize(
    ("what", "reason"),
    [("tree", "the hub gives no list of its files"), ("files", "the hub answered with status 400. Try again later")],
)
async def test_why_a_part_of_it_failed_is_found_behind_what_is_raised(
    reranker: CrossEncoderReranker, overlap: Hub, what: str, reason: str
) -> None:
    overlap.refusals[f"{NAME}/{what}"] = (HTTPStatus.BAD_REQUEST, "")
    with pytest.raises(RerankError, match=f"model '{NAME}' could not be fetched: {reason}."):
        await steps(reranker)


async def test_a_broken_update_leaves_the_model_that_was_there(
    reranker: CrossEncoderReranker, overlap: Hub, settings: Settings
) -> None:
    await steps(reranker)
    before = MODEL.folder()
    weights = overlap.models[NAME].pop("model.safetensors")
    overlap.models[NAME] |= {"model.safetensors": weights + b" ", "new.json": b"{}"}
    overlap.held["model.safetensors"] = threading.Event()
    async with aclosing(reranker.downloads()) as begun:
        await anext(begun)
        overlap.held["model.safetensors"].set()
    assert MODEL.folder() == before
    assert await best(create_sentence_transformers(settings(NAME, offline=True))) == ANSWER
    overlap.models[NAME]["model.safetensors"] = weights
    overlap.models[NAME]["README.md"] = b"# New"
    await steps(reranker)
    assert MODEL.folder() != before


async def test_closing_the_reranker_stops_a_fetch_that_a_search_began(
    reranker: CrossEncoderReranker, overlap: Hub
) -> None:
    overlap.held["model.safetensors"] = threading.Event()
    loading = reranker._loader(tracker := Tracker())
    reranker._tracker = tracker
    outcome: list[BaseException] = []

    def load() -> None:
        try:
            loading()
        except RerankError as error:
            outcome.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    while "model.safetensors" not in overlap.sent():
        thread.join(0.01)
    await reranker.close()
    overlap.held["model.safetensors"].set()
    thread.join(60)
    assert [type(error) for error in outcome] == [FetchStoppedError]
    assert MODEL.folder() is None


async def test_a_fetch_that_does_not_end_is_not_waited_for_for_long(
    reranker: CrossEncoderReranker, overlap: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reranker_module, "STOP_SECONDS", 0.01)
    overlap.held["model.safetensors"] = threading.Event()
    async with aclosing(reranker.downloads()) as begun:
        await anext(begun)
    assert not overlap.held["model.safetensors"].is_set()


@pytest.mark.parametrize(
    ("status", "code", "sentence"),
    [
        (404, "RepoNotFound", "the hub has no such model, or keeps it private. Check reranking.model.name. Set"),
        (403, "GatedRepo", "its authors grant access to those who ask on its page. Set reranking.model.api_key, or"),
        (404, "RevisionNotFound", "it has no revision 'main'. Check rerank_sentence_transformers.revision."),
        (500, "", "the hub answered with status 500. Try again later."),
    ],
)
async def test_each_refusal_is_one_sentence(
    reranker: CrossEncoderReranker, overlap: Hub, status: int, code: str, sentence: str
) -> None:
    overlap.refusals[NAME] = (HTTPStatus(status), code)
    with pytest.raises(RerankError) as caught:
        await steps(reranker)
    assert f"model '{NAME}' could not be fetched: {sentence}" in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)


async def test_a_hub_that_is_not_there_is_one_sentence_unless_the_model_is(
    reranker: CrossEncoderReranker, overlap: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = overlap.url
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(RerankError, match=r"cannot be reached, or the connection broke \(ConnectError\)"):
        await steps(reranker)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", there)
    await steps(reranker)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    assert await steps(reranker) == []


async def test_a_full_disk_is_one_sentence(
    reranker: CrossEncoderReranker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "file"))
    with pytest.raises(RerankError, match=r"could not be fetched: (Not a directory|File exists)\."):
        await steps(reranker)


async def test_an_impossible_name_is_one_sentence(settings: Settings, hub: Hub) -> None:
    for work in (steps, best):
        with pytest.raises(RerankError, match="the hub has no models of such names, and there is no folder of it"):
            await work(create_sentence_transformers(settings("acme/no..such")))


async def test_what_nobody_foresaw_is_named_by_its_type(
    reranker: CrossEncoderReranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(HubModel, "_fetched", fail)
    with pytest.raises(RerankError, match="could not be fetched: ZeroDivisionError. Try again."):
        await steps(reranker)


async def test_the_key_of_the_configuration_is_the_hubs_token(overlap: Hub) -> None:
    model = {"provider": "sentence-transformers", "name": NAME, "api_key": "hf_key"}
    reranker = create_sentence_transformers(testing_config({"reranking": {"model": model}}, plugin))
    await steps(reranker)
    assert overlap.tokens == {"Bearer hf_key"}
    assert "hf_key" not in repr(reranker._place)


async def test_a_name_without_an_owner_is_one_of_the_cross_encoders(hub: Hub, settings: Settings) -> None:
    with pytest.raises(RerankError, match="model 'cross-encoder/ms-marco' could not be fetched"):
        await steps(create_sentence_transformers(settings("ms-marco")))


async def test_a_revision_is_fetched_and_found_by_its_commit(overlap: Hub, settings: Settings) -> None:
    commit = overlap.commit(NAME)
    reranker = create_sentence_transformers(settings(NAME, revision=commit))
    await steps(reranker)
    assert HubModel(repository=NAME, revision=commit).folder() is not None
    assert await best(reranker) == ANSWER


async def test_a_commit_that_is_half_there_is_not_taken_for_whole(overlap: Hub, settings: Settings) -> None:
    commit = overlap.commit(NAME)
    overlap.cut["model.safetensors"] = 5000
    with pytest.raises(RerankError):
        await steps(create_sentence_transformers(settings(NAME, revision=commit)))
    assert len(overlap.sent()) >= len(overlap.models[NAME])
    assert HubModel(repository=NAME, revision=commit).folder() is None


def test_weights_in_parts_are_whole_when_all_parts_are_there(tmp_path: Path) -> None:
    parts = ("model-1.safetensors", "model-2.safetensors")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": dict(zip("ab", parts, strict=True))})
    )
    (tmp_path / parts[0]).write_bytes(b"")
    assert not seems_whole(tmp_path)
    (tmp_path / parts[1]).write_bytes(b"")
    assert seems_whole(tmp_path)


async def test_weights_for_other_libraries_are_left_out(reranker: CrossEncoderReranker, overlap: Hub) -> None:
    overlap.models[NAME] |= {"pytorch_model.bin": b"0", "onnx/model.onnx": b"0", "openvino/openvino_model.xml": b"0"}
    await steps(reranker)
    assert not {"pytorch_model.bin", "onnx/model.onnx", "openvino/openvino_model.xml"} & set(overlap.sent())
    assert MODEL.folder() is not None


def test_weights_in_the_older_format_are_wanted_where_there_are_no_others() -> None:
    assert "pytorch_model*.bin" in unneeded(["model.safetensors"])
    assert "pytorch_model*.bin" not in unneeded(["pytorch_model.bin"])


async def test_what_another_program_brought_serves_if_it_seems_whole(
    reranker: CrossEncoderReranker, overlap: Hub, settings: Settings, tmp_path: Path
) -> None:
    hf_hub_download = library("huggingface_hub").hf_hub_download
    for path in overlap.models[NAME]:
        if path != "model.safetensors":
            hf_hub_download(NAME, path)
    assert MODEL.folder() is None
    hf_hub_download(NAME, "model.safetensors")
    assert MODEL.folder() is not None
    assert await best(create_sentence_transformers(settings(NAME, offline=True))) == ANSWER


async def test_a_folder_needs_no_download_and_has_to_be_there(settings: Settings, overlap_folder: Path) -> None:
    assert await steps(create_sentence_transformers(settings(overlap_folder))) == []
    with pytest.raises(RerankError, match="there is no folder './gone'"):
        await steps(create_sentence_transformers(settings("./gone")))


async def test_core_fetches_what_the_configuration_names(overlap: Hub, settings: Settings) -> None:
    found = [step async for step in download_models(settings(NAME))]
    assert (found[-1].outcome, found[-1].done) == ("fetched", size(overlap))
    assert [step.outcome async for step in download_models(settings(NAME))][-1] == "present"


def another_process(folder: Path, hub: Hub) -> "subprocess.Popen[str]":
    """Fetch what the configuration names, with the hub's address in the environment."""
    config = {"reranking": {"model": {"provider": "sentence-transformers", "name": NAME}}}
    (folder / "haiku.rag.yaml").write_text(yaml.safe_dump(config))
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "0"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment,
    )  # fmt: skip


PROGRAM = """
import asyncio
import sys

from haiku.rag.client import download_models
from haiku.rag.config import load_config

async def main():
    async for step in download_models(load_config()):
        if step.kind == "reranker" and step.outcome != "running":
            print(step.outcome, step.done, step.reason)
    assert not {"torch", "transformers", "sentence_transformers"} & set(sys.modules)

asyncio.run(main())
"""


def test_another_process_fetches_without_loading_anything_heavy(overlap: Hub, tmp_path: Path) -> None:
    assert another_process(tmp_path, overlap).communicate(timeout=120) == (f"fetched {size(overlap)} \n", "")
    assert another_process(tmp_path, overlap).communicate(timeout=120) == ("present 0 \n", "")
    assert len(overlap.sent()) == len(overlap.models[NAME])


def test_interrupted_a_process_ends_though_the_hub_hangs_and_another_one_goes_on(overlap: Hub, tmp_path: Path) -> None:
    overlap.held["model.safetensors"] = threading.Event()
    process = another_process(tmp_path, overlap)
    while "model.safetensors" not in overlap.sent():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (-signal.SIGINT, "")
    overlap.held.pop("model.safetensors").set()
    assert another_process(tmp_path, overlap).communicate(timeout=120)[0].startswith("fetched ")
