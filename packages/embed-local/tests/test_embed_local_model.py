"""What a model of the embedder `onnx` is fed, which output is read, and how its failures are reported."""

import os
from collections.abc import Callable
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from numpy.typing import NDArray

from haiku.rag.config import AppConfig
from haiku.rag.contracts.embedder import Vectors
from haiku.rag.embedders.local.model import EncoderModel, Sequences, threads
from haiku.rag.embedders.local.onnx import create_onnx
from haiku.rag.errors import EmbeddingError

pytestmark = pytest.mark.anyio

Settings = Callable[..., AppConfig]
Folder = Callable[..., Path]
Model = Callable[..., bytes]

INT64, INT32, FLOAT = 7, 6, 1


async def test_inputs_are_fed_as_the_model_wants_them(
    settings: Settings, tiny_folder: Folder, onnx_model: Model
) -> None:
    inputs = {"input_ids": INT32, "attention_mask": INT32, "token_type_ids": INT64, "position_ids": INT64}
    for given in (inputs, {"input_ids": INT64}):
        embedder = create_onnx(settings(name=str(tiny_folder(onnx_model(inputs=given)))))
        assert (await embedder.embed_documents(["red", "blue blue"])).tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"input_ids": INT64, "past_key_values.0.key": INT64}, "wants the input 'past_key_values.0.key'"),
        ({"input_ids": INT64, "attention_mask": FLOAT}, "wants the input 'attention_mask'"),
    ],
)
async def test_a_model_that_wants_something_else_is_refused(
    settings: Settings, tiny_folder: Folder, onnx_model: Model, inputs: dict[str, int], message: str
) -> None:
    with pytest.raises(EmbeddingError, match=message):
        await create_onnx(settings(name=str(tiny_folder(onnx_model(inputs=inputs))))).embed_query("red")


async def test_a_model_without_token_ids_is_refused(settings: Settings, tiny_folder: Folder, onnx_model: Model) -> None:
    data = onnx_model(inputs={"attention_mask": INT64}, index="attention_mask")
    with pytest.raises(EmbeddingError, match="has no input 'input_ids', so it is not a text encoder"):
        await create_onnx(settings(name=str(tiny_folder(data)))).embed_query("red")


async def test_an_error_gives_the_path_as_it_was_typed(
    settings: Settings, tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = tiny_folder(b"not a model").parent
    monkeypatch.chdir(parent)
    with pytest.raises(EmbeddingError, match=r"'model\.onnx' in 'tiny' is not a model") as caught:
        await create_onnx(settings(name="tiny")).embed_query("red")
    assert str(parent) not in str(caught.value)


MEAN = [("ReduceMean", ["gathered"], ["sentence_embedding"])]
MODULES = {
    "modules.json": [{"type": "a.models.Transformer", "path": ""}, {"type": "a.models.Dense", "path": "2_Dense"}]
}


async def test_an_output_of_text_vectors_is_taken_as_it_is(
    settings: Settings, tiny_folder: Folder, onnx_model: Model
) -> None:
    folder = tiny_folder(onnx_model(output="sentence_embedding", tail=MEAN, rank=2), files=MODULES)
    embedder = create_onnx(settings(name=str(folder), normalize=False))
    assert (await embedder.embed_query("red blue")).tolist() == [0.5, 0, 0.5]


async def test_a_layer_that_the_model_file_lacks_is_not_left_out_silently(
    settings: Settings, tiny_folder: Folder
) -> None:
    with pytest.raises(EmbeddingError, match=r"lists 'Dense', which 'model.onnx' does not contain"):
        await create_onnx(settings(name=str(tiny_folder(files=MODULES)))).embed_query("red")


async def test_an_output_of_another_name_is_found(settings: Settings, tiny_folder: Folder, onnx_model: Model) -> None:
    folder = tiny_folder(onnx_model(output="output_0"))
    assert (await create_onnx(settings(name=str(folder))).embed_query("red")).tolist() == [1, 0, 0]


async def test_a_model_without_vectors_is_refused(settings: Settings, tiny_folder: Folder, onnx_model: Model) -> None:
    tail = [("ReduceMean", ["gathered"], ["mean"]), ("ReduceMean", ["mean"], ["scores"])]
    with pytest.raises(EmbeddingError, match="has no output of token vectors or text vectors"):
        await create_onnx(settings(name=str(tiny_folder(onnx_model(output="scores", tail=tail, rank=1))))).embed_query(
            "red"
        )


async def test_a_model_that_ignores_the_batch_is_refused(
    settings: Settings, tiny_folder: Folder, onnx_model: Model
) -> None:
    rows = np.ones((1, 2, 3), dtype=np.float32)
    data = onnx_model(rows=rows, tail=[("Identity", ["table"], ["last_hidden_state"])])
    with pytest.raises(EmbeddingError, match=r"returned an array of shape \(1, 2, 3\), which is not one of vectors"):
        await create_onnx(settings(name=str(tiny_folder(data)), vector_dim=3)).embed_documents(["", ""])


async def test_a_failure_of_the_runtime_is_a_sentence(
    settings: Settings, tiny_folder: Folder, onnx_model: Model
) -> None:
    folder = tiny_folder(onnx_model(rows=np.ones((3, 3), dtype=np.float32)))
    with pytest.raises(EmbeddingError, match=r"'model.onnx' in '.*' failed on a text: .*Gather"):
        await create_onnx(settings(name=str(folder))).embed_query("blue")


async def test_numbers_that_are_not_finite_are_an_error(
    settings: Settings, tiny_folder: Folder, onnx_model: Model
) -> None:
    rows = np.ones((7, 3), dtype=np.float32)
    rows[4] = np.nan
    with pytest.raises(EmbeddingError, match="not finite for 1 of 2 texts"):
        await create_onnx(settings(name=str(tiny_folder(onnx_model(rows=rows))))).embed_documents(["red", "blue"])


async def test_a_model_that_quantises_over_its_batch_reads_texts_one_by_one(
    settings: Settings, tiny_folder: Folder, onnx_model: Model
) -> None:
    tail = [
        ("DynamicQuantizeLinear", ["gathered"], ["quantised", "scale", "zero"]),
        ("DequantizeLinear", ["quantised", "scale", "zero"], ["last_hidden_state"]),
    ]
    rows = np.random.default_rng(3).normal(size=(7, 3)).astype(np.float32)
    rows[5] *= 40
    embedder = create_onnx(settings(name=str(tiny_folder(onnx_model(rows=rows, tail=tail))), normalize=False))
    together = await embedder.embed_documents(["red", "query", "blue green"])
    np.testing.assert_allclose(together[0], await embedder.embed_query("red"), atol=1e-6)
    np.testing.assert_allclose(together[2], await embedder.embed_query("blue green"), atol=1e-6)


def test_threads_are_those_that_the_process_may_use_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    assert threads() == 3
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert threads() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads() == 1


async def test_without_a_mask_a_short_text_is_not_padded(
    settings: Settings, tiny_folder: Folder, onnx_model: Model
) -> None:
    """The tiny model reads padding as a word of its own, [9, 9, 9], which would move the mean of a shorter text."""
    data = onnx_model(inputs={"input_ids": INT64}, output="sentence_embedding", tail=MEAN, rank=2)
    embedder = create_onnx(settings(name=str(tiny_folder(data)), normalize=False))
    assert (await embedder.embed_documents(["red", "blue blue blue"])).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_texts_that_stay_apart_are_read_at_the_same_time(
    tiny_folder: Folder, onnx_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("haiku.rag.embedders.local.model.threads", lambda: 3)
    source = tiny_folder(onnx_model(inputs={"input_ids": INT64})) / "model.onnx"
    model = EncoderModel(source, where="the model", side_by_side=True)
    together = Barrier(3)
    hidden = model._hidden

    def waiting(sequences: Sequences) -> tuple[Vectors, NDArray[np.int64]]:
        together.wait(timeout=20)
        return hidden(sequences)

    monkeypatch.setattr(model, "_hidden", waiting)
    sequences = [(2,), (4, 4), (3,), (2, 2, 2), (4,), (3, 3)]
    found = model.run(sequences, "mean")
    assert found.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]
