"""The reranker over a small real cross-encoder in a folder."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.contracts import RerankCandidate, Reranker
from haiku.rag.errors import RerankError
from haiku.rag.rerankers.sentence_transformers.background import Background
from haiku.rag.rerankers.sentence_transformers.library import library
from haiku.rag.rerankers.sentence_transformers.model import CrossEncoderModel
from haiku.rag.rerankers.sentence_transformers.reranker import (
    CrossEncoderReranker,
    create_sentence_transformers,
)
from haiku.rag.testing import RerankerContract
from haiku.rag.testing.reranker import ANSWER, PASSAGES, QUERY

pytestmark = pytest.mark.anyio
Settings = Callable[..., AppConfig]


def candidates(*texts: str) -> list[RerankCandidate]:
    return [RerankCandidate(text=text, source="db", chunk_id=str(number)) for number, text in enumerate(texts)]


async def scores(reranker: CrossEncoderReranker, *texts: str, query: str = QUERY) -> list[float]:
    """The scores in the order of the texts."""
    return [score for _, score in sorted(await reranker.rerank(query, candidates(*texts), len(texts)))]


class TestCrossEncoder(RerankerContract):
    @pytest.fixture
    def reranker(self, overlap_folder: Path, settings: Settings) -> Reranker:
        return create_sentence_transformers(settings(overlap_folder, batch_size=2))


class TestCrossEncoderOfPlainNumbers(RerankerContract):
    @pytest.fixture
    def reranker(self, overlap_folder: Path, settings: Settings) -> Reranker:
        return create_sentence_transformers(settings(overlap_folder, activation="none", device="auto"))


async def test_a_score_does_not_depend_on_its_batch(overlap_folder: Path, settings: Settings) -> None:
    texts = ("stone", ANSWER, " ".join(PASSAGES * 3), "", *PASSAGES)
    together = await scores(create_sentence_transformers(settings(overlap_folder)), *texts)
    alone = await scores(create_sentence_transformers(settings(overlap_folder, batch_size=1)), *texts)
    mixed = await scores(create_sentence_transformers(settings(overlap_folder, batch_size=3)), *texts[::-1])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-4)
    np.testing.assert_allclose(together, mixed[::-1], rtol=0, atol=1e-4)


async def test_the_sigmoid_is_that_of_the_plain_numbers_in_double_precision(
    overlap_folder: Path, settings: Settings
) -> None:
    plain = await scores(create_sentence_transformers(settings(overlap_folder, activation="none")), ANSWER, "owls")
    between = await scores(create_sentence_transformers(settings(overlap_folder)), ANSWER, "owls")
    assert plain[0] > 0 > plain[1]
    np.testing.assert_allclose(between, 1 / (1 + np.exp(-np.array(plain))), rtol=1e-9)


async def test_large_numbers_stay_apart_and_do_not_overflow(overlap_folder: Path, settings: Settings) -> None:
    section = settings(overlap_folder).section("rerank_sentence_transformers")
    model = CrossEncoderModel(overlap_folder, "overlap", section)
    with model._torch.no_grad():
        model._encoder.model.classifier.weight[:, 0] = 60
        model._encoder.model.classifier.bias[:] = -28
    high, low = model.scores(QUERY, [QUERY, "owls"], threading.Event())
    assert 0 < low < 1e-12
    assert 1 - 1e-7 < high < 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "auto"])
async def test_the_weights_are_read_as_the_type_that_is_set(
    overlap_folder: Path, settings: Settings, dtype: str
) -> None:
    reranker = create_sentence_transformers(settings(overlap_folder, dtype=dtype))
    right, wrong = await scores(reranker, ANSWER, PASSAGES[0])
    assert right > wrong
    assert str((await reranker._model())._encoder.dtype) == f"torch.{dtype.replace('auto', 'float32')}"


async def test_arguments_for_the_model_reach_it(overlap_folder: Path, settings: Settings) -> None:
    reranker = create_sentence_transformers(settings(overlap_folder, model_kwargs={"attn_implementation": "eager"}))
    encoder = (await reranker._model())._encoder
    assert encoder.model.config._attn_implementation == "eager"


@pytest.mark.parametrize(("wanted", "used"), [(12, 12), (4000, 128), (None, 128)])
async def test_no_more_is_read_than_is_wanted_and_than_the_model_reads(
    overlap_folder: Path, settings: Settings, wanted: int | None, used: int
) -> None:
    reranker = create_sentence_transformers(settings(overlap_folder, max_length=wanted))
    assert (await reranker._model())._encoder.max_seq_length == used
    early, late = await scores(reranker, f"{ANSWER} {'owls ' * 400}", f"{'owls ' * 400} {ANSWER}")
    assert early >= late


async def test_half_a_character_does_no_harm(overlap_folder: Path, settings: Settings) -> None:
    reranker = create_sentence_transformers(settings(overlap_folder))
    assert len(await scores(reranker, "stone \udc80 bridge", query="bridge \ud83d")) == 1


async def test_nothing_is_loaded_before_it_is_needed_and_it_is_loaded_once(
    overlap_folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []
    load = CrossEncoderModel.__init__

    def counted(self: CrossEncoderModel, *arguments: Any) -> None:
        loads.append(threading.current_thread().name)
        load(self, *arguments)

    monkeypatch.setattr(CrossEncoderModel, "__init__", counted)
    reranker = create_sentence_transformers(settings(overlap_folder))
    assert await reranker.rerank(QUERY, [], 5) == []
    assert loads == []
    async with anyio.create_task_group() as group:
        for text in (ANSWER, *PASSAGES):
            group.start_soon(scores, reranker, text)
    assert loads == ["Background"]
    await reranker.close()
    await scores(reranker, ANSWER)
    assert len(loads) == 2


async def test_whoever_is_cancelled_goes_at_once_and_no_other_batch_begins(
    overlap_folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = create_sentence_transformers(settings(overlap_folder, batch_size=1))
    encoder = (await reranker._model())._encoder
    begun, released, batches = threading.Event(), threading.Event(), []
    compute = encoder.predict

    def held(pairs: list[Any], **settings: Any) -> Any:
        batches.append(pairs)
        begun.set()
        assert released.wait(60)
        return compute(pairs, **settings)

    monkeypatch.setattr(encoder, "predict", held)
    async with anyio.create_task_group() as group:
        group.start_soon(scores, reranker, *PASSAGES)
        await anyio.to_thread.run_sync(begun.wait)
        group.cancel_scope.cancel()
    assert len(batches) == 1
    with anyio.move_on_after(0.05):
        await scores(reranker, *PASSAGES)
    assert len(batches) == 1
    released.set()
    assert len(await scores(reranker, ANSWER)) == 1
    assert len(batches) == 2


async def test_whoever_is_cancelled_leaves_the_loading_to_the_next(
    overlap_folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = threading.Event(), threading.Event()
    load = CrossEncoderModel.__init__

    def held(self: CrossEncoderModel, *arguments: Any) -> None:
        assert not begun.is_set()
        begun.set()
        assert released.wait(60)
        load(self, *arguments)

    monkeypatch.setattr(CrossEncoderModel, "__init__", held)
    reranker = create_sentence_transformers(settings(overlap_folder))
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(scores, reranker, ANSWER)
            await anyio.to_thread.run_sync(begun.wait)
            scope.cancel()
    released.set()
    assert len(await scores(reranker, ANSWER)) == 1


async def test_what_fails_in_the_background_is_raised_where_it_is_waited_for() -> None:
    def fail() -> None:
        raise SystemExit("no")

    call = Background(fail)
    for _ in range(2):
        with pytest.raises(SystemExit, match="no"):
            await call.result()


async def test_a_folder_that_is_no_model_is_one_sentence_and_is_tried_again(
    overlap_folder: Path, settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    reranker = create_sentence_transformers(settings(folder))
    with pytest.raises(RerankError, match=r"empty' could not be loaded as a cross-encoder \(\w+\). Its files or the"):
        await scores(reranker, ANSWER)
    shutil.copytree(overlap_folder, folder, dirs_exist_ok=True)
    assert len(await scores(reranker, ANSWER)) == 1


async def test_a_folder_that_is_gone_is_one_sentence(settings: Settings) -> None:
    with pytest.raises(RerankError, match=r"there is no folder './gone' with a model. A relative path starts at"):
        await scores(create_sentence_transformers(settings("./gone")), ANSWER)


async def test_a_model_of_several_labels_is_refused(
    settings: Settings, save_model: Callable[..., Path], tmp_path: Path
) -> None:
    folder = save_model(tmp_path / "three", [QUERY], labels=3)
    with pytest.raises(RerankError, match="gives 3 numbers for a passage, and a reranker needs one"):
        await scores(create_sentence_transformers(settings(folder)), ANSWER)


async def test_a_model_with_code_of_its_own_needs_leave(
    settings: Settings, overlap_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(overlap_folder, tmp_path / "own"))
    text = (folder / "config.json").read_text()
    mapped = '{"auto_map": {"AutoConfig": "own.OwnConfig"}, "model_type": "own", '
    (folder / "config.json").write_text(mapped + text.replace('"model_type": "bert",', "").lstrip()[1:])
    (folder / "own.py").write_text("raise AssertionError('it ran')")
    with pytest.raises(RerankError, match=r"brings code of its own.*trust_remote_code: true"):
        await scores(create_sentence_transformers(settings(folder)), ANSWER)


async def test_a_batch_that_the_model_cannot_take_is_one_sentence(
    overlap_folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = create_sentence_transformers(settings(overlap_folder))
    encoder = (await reranker._model())._encoder
    monkeypatch.setattr(encoder[0], "preprocess", _full)
    with pytest.raises(RerankError, match="failed on a batch of 2 passages: RuntimeError"):
        await scores(reranker, ANSWER, "owls")


def _full(*_: Any, **__: Any) -> Any:
    raise RuntimeError("out of memory at /some/where")


async def test_nothing_is_printed(overlap_folder: Path, settings: Settings, capfd: pytest.CaptureFixture[str]) -> None:
    logging = library("transformers.utils.logging")
    assert logging.is_progress_bar_enabled()
    await scores(create_sentence_transformers(settings(overlap_folder)), ANSWER)
    assert capfd.readouterr() == ("", "")
    assert logging.is_progress_bar_enabled()


async def test_a_search_is_reranked_by_it(overlap_folder: Path, settings: Settings, tmp_path: Path) -> None:
    config = settings(overlap_folder)
    async with HaikuRAG(tmp_path / "notes.memory", config, create=True) as client:
        for text in (*PASSAGES, ANSWER):
            await client.create_document(text)
        results = await client.search(QUERY, limit=2)
    assert results[0].content == ANSWER
    assert 0.5 < results[0].score < 1
    assert results.report.rerank == "ok"
