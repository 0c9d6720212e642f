"""The embedder `onnx`, with the real model in a folder and with models of three dimensions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haiku.rag.config import AppConfig
from haiku.rag.embedders.local.onnx import create_onnx
from haiku.rag.embedders.local.text_embedder import TextEmbedder
from haiku.rag.errors import ConfigError, EmbeddingError

pytestmark = pytest.mark.anyio

Settings = Callable[..., AppConfig]
Folder = Callable[..., Path]
Model = Callable[..., bytes]

FAR_LIMIT = int(1e30)


async def test_the_real_model_from_a_folder_gives_nearly_the_vectors_of_local(
    settings: Settings, minilm_folder: Path, local: TextEmbedder
) -> None:
    """The folder's model computes in float32, `local` in integers."""
    embedder = create_onnx(settings(name=str(minilm_folder)))
    texts = ["Bees make honey.", "The bridge was rebuilt in 1926.", "Owls hunt at night and rest by day. " * 20]
    cosines = (await embedder.embed_documents(texts) * await local.embed_documents(texts)).sum(axis=1)
    assert cosines.min() > 0.985
    assert embedder.identity.describe() == "onnx/minilm, 384 dimensions"


async def test_pooling_changes_the_vector(settings: Settings, minilm_folder: Path) -> None:
    found = {
        pooling: await create_onnx(settings(name=str(minilm_folder), pooling=pooling)).embed_query("Bees make honey.")
        for pooling in ("mean", "cls", "last")
    }
    assert float(found["mean"] @ found["cls"]) < 0.99
    assert float(found["cls"] @ found["last"]) < 0.99


async def test_cls_and_last_are_independent_of_the_batch(settings: Settings, minilm_folder: Path) -> None:
    texts = ["one", "a much longer sentence about the sea", "word " * 30]
    for pooling in ("cls", "last"):
        embedder = create_onnx(settings(name=str(minilm_folder), pooling=pooling))
        together = await embedder.embed_documents(texts)
        alone = [await embedder.embed_query(text) for text in texts]
        np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize(
    ("pooling", "expected"), [("mean", [0.5, 0.25, 0.25]), ("cls", [1, 0, 0]), ("last", [0, 0, 1])]
)
async def test_pooling_is_exact(settings: Settings, tiny_folder: Folder, pooling: str, expected: list[float]) -> None:
    embedder = create_onnx(settings(name=str(tiny_folder()), pooling=pooling, normalize=False))
    vectors = await embedder.embed_documents(["red red green blue", "red red green blue red red red"])
    np.testing.assert_allclose(vectors[0], expected, atol=1e-6)


async def test_windows_are_weighted_by_their_tokens_and_not_normalised_when_told_so(
    settings: Settings, tiny_folder: Folder
) -> None:
    embedder = create_onnx(settings(name=str(tiny_folder()), normalize=False, max_tokens=2))
    np.testing.assert_allclose(await embedder.embed_query("red red red red blue"), [0.8, 0, 0.2], atol=1e-6)


async def test_prefixes_stand_before_every_text(settings: Settings, tiny_folder: Folder) -> None:
    embedder = create_onnx(
        settings(name=str(tiny_folder()), query_prefix="query ", document_prefix="doc ", normalize=False)
    )
    assert (await embedder.embed_query("blue")).tolist() == [2, 0, 0.5]
    assert (await embedder.embed_documents(["blue", ""])).tolist() == [[0, 2, 0.5], [0, 4, 0]]
    assert embedder.identity.document_prefix == "doc "


async def test_an_empty_text_without_special_tokens_has_a_vector(settings: Settings, tiny_folder: Folder) -> None:
    assert np.isfinite(await create_onnx(settings(name=str(tiny_folder()))).embed_query("")).all()


async def test_a_vector_of_zeros_stays_finite(settings: Settings, tiny_folder: Folder, onnx_model: Model) -> None:
    folder = tiny_folder(onnx_model(rows=np.zeros((7, 3), dtype=np.float32)))
    assert (await create_onnx(settings(name=str(folder))).embed_query("red")).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("files", "configured", "dimension"),
    [
        ({}, {}, 3),
        ({"config.json": {"hidden_size": 3}}, {}, 3),
        ({"config.json": {"dim": 3}}, {}, 3),
        ({"config.json": {"hidden_size": 5}}, {"vector_dim": 3}, 3),
    ],
)
async def test_the_dimension_is_found(
    settings: Settings, tiny_folder: Folder, files: dict[str, Any], configured: dict[str, Any], dimension: int
) -> None:
    embedder = create_onnx(settings(name=str(tiny_folder(files=files)), **configured))
    assert embedder.identity.dimension == dimension
    assert (await embedder.embed_query("red")).shape == (dimension,)


async def test_a_wrong_dimension_is_an_error_that_gives_the_right_one(settings: Settings, tiny_folder: Folder) -> None:
    with pytest.raises(EmbeddingError, match=r"returns vectors of 3 dimensions, and 8 were expected\. Set .* to 3"):
        await create_onnx(settings(name=str(tiny_folder()), vector_dim=8)).embed_query("red")


@pytest.mark.parametrize(
    ("files", "configured", "limit"),
    [
        ({}, {}, 510),
        ({"config.json": {"max_position_embeddings": 128}}, {}, 126),
        ({"config.json": {"max_position_embeddings": 8192}}, {}, 510),
        ({"config.json": {"max_position_embeddings": 8192}}, {"max_tokens": 2000}, 2000),
        ({"config.json": {"max_position_embeddings": 128}}, {"max_tokens": 2000}, 126),
        ({"config.json": {"max_position_embeddings": 130, "model_type": "mpnet"}}, {}, 126),
        ({"config.json": {"max_position_embeddings": 130, "model_type": "mpnet", "pad_token_id": 0}}, {}, 127),
        ({"sentence_bert_config.json": {"max_seq_length": 256}}, {}, 254),
        ({"tokenizer_config.json": {"model_max_length": FAR_LIMIT}}, {}, 510),
        ({"tokenizer_config.json": {"model_max_length": 64}}, {}, 62),
        ({"tokenizer_config.json": []}, {"max_tokens": 7}, 7),
    ],
)
def test_the_longest_text_comes_from_the_configuration_or_the_files(
    settings: Settings, tiny_folder: Folder, files: dict[str, Any], configured: dict[str, Any], limit: int
) -> None:
    assert create_onnx(settings(name=str(tiny_folder(files=files)), **configured)).max_tokens == limit


POOLING_FILES: list[tuple[dict[str, Any], dict[str, Any], list[float]]] = [
    ({"1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}}, {}, [1, 0, 0]),
    ({"1_Pooling/config.json": {"pooling_mode_lasttoken": True}}, {}, [0, 0, 1]),
    ({"1_Pooling/config.json": {"pooling_mode": "cls"}}, {}, [1, 0, 0]),
    ({"1_Pooling/config.json": {"pooling_mode_cls_token": True}}, {"pooling": "last"}, [0, 0, 1]),
    ({"1_Pooling/config.json": {"pooling_mode_max_tokens": True}}, {"pooling": "last"}, [0, 0, 1]),
    (
        {
            "modules.json": [
                {"type": "a.models.Transformer", "path": ""},
                {"type": "a.models.Pooling", "path": "pool"},
            ],
            "pool/config.json": {"pooling_mode_cls_token": True},
        },
        {},
        [1, 0, 0],
    ),
]


@pytest.mark.parametrize(("files", "configured", "expected"), POOLING_FILES)
async def test_pooling_comes_from_the_configuration_or_the_files(
    settings: Settings, tiny_folder: Folder, files: dict[str, Any], configured: dict[str, Any], expected: list[float]
) -> None:
    embedder = create_onnx(settings(name=str(tiny_folder(files=files)), normalize=False, **configured))
    assert (await embedder.embed_query("red blue")).tolist() == expected


@pytest.mark.parametrize(
    "modes",
    [
        {"pooling_mode_max_tokens": True},
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        {"pooling_mode": "weightedmean"},
    ],
)
def test_a_pooling_that_is_unknown_here_is_refused(
    settings: Settings, tiny_folder: Folder, modes: dict[str, Any]
) -> None:
    folder = tiny_folder(files={"1_Pooling/config.json": modes})
    with pytest.raises(ConfigError, match=r"one of mean, cls and last is possible\. Set embeddings\.model\.pooling"):
        create_onnx(settings(name=str(folder)))


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx", "encoder.onnx", "onnx/encoder.onnx"])
async def test_the_model_is_found(settings: Settings, tiny_folder: Folder, name: str) -> None:
    folder = tiny_folder(model_name=name)
    assert (await create_onnx(settings(name=str(folder))).embed_query("red")).tolist() == [1, 0, 0]


async def test_a_relative_path_is_resolved_by_the_configuration(
    settings: Settings, tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tiny_folder() / "onnx").mkdir()
    monkeypatch.chdir(tiny_folder().parent)
    assert create_onnx(settings(name="./tiny/")).identity.model == "tiny"
    monkeypatch.chdir(tiny_folder() / "onnx")
    assert create_onnx(settings(name="..")).identity.model == "tiny"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: folder.rename(folder.parent / "elsewhere"), "does not exist. Give a folder with 'model.onnx'"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "has no 'tokenizer.json'"),
        (lambda folder: (folder / "model.onnx").unlink(), "has no 'model.onnx' or 'onnx/model.onnx'"),
        (
            lambda folder: [(folder / "model.onnx").rename(folder / "a.onnx"), (folder / "b.onnx").touch()],
            "has several models: 'a.onnx', 'b.onnx'",
        ),
        (lambda folder: (folder / "config.json").write_text("{"), "'config.json' in .* cannot be read as JSON"),
    ],
)
def test_an_incomplete_folder_is_a_sentence(
    settings: Settings, tiny_folder: Folder, change: Callable[[Path], object], message: str
) -> None:
    folder = tiny_folder()
    change(folder)
    with pytest.raises(ConfigError, match=message):
        create_onnx(settings(name=str(folder)))


def test_a_file_in_place_of_the_folder_is_a_sentence(settings: Settings, tiny_folder: Folder) -> None:
    with pytest.raises(ConfigError, match="is a file"):
        create_onnx(settings(name=str(tiny_folder() / "model.onnx")))


def test_a_folder_has_to_be_named(settings: Settings) -> None:
    with pytest.raises(ConfigError, match=r"embeddings\.model\.name: embedder 'onnx' needs the path of a folder"):
        create_onnx(settings())


@pytest.mark.parametrize("content", [b"", b"not a model"])
async def test_a_broken_model_is_a_sentence(settings: Settings, tiny_folder: Folder, content: bytes) -> None:
    with pytest.raises(EmbeddingError, match=r"'model.onnx' in '.*tiny' is not a model that can be loaded"):
        await create_onnx(settings(name=str(tiny_folder(content)))).embed_query("red")


@pytest.mark.parametrize("content", ["", "{}", "{]"])
def test_a_broken_tokenizer_is_a_sentence(settings: Settings, tiny_folder: Folder, content: str) -> None:
    folder = tiny_folder(files={"tokenizer.json": content})
    with pytest.raises(EmbeddingError, match=r"'tokenizer.json' in '.*tiny' is not a tokenizer that can be read"):
        create_onnx(settings(name=str(folder))).count_tokens(["red"])


def test_a_tokenizer_that_fails_on_a_text_is_a_sentence(settings: Settings, tiny_folder: Folder) -> None:
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}
    folder = tiny_folder(files={"tokenizer.json": {"version": "1.0", "added_tokens": [], "model": model}})
    embedder = create_onnx(settings(name=str(folder)))
    assert embedder.count_tokens(["a"]) == [1]
    with pytest.raises(EmbeddingError, match=r"'tokenizer.json' in '.*tiny' failed on a text: .*UNK"):
        embedder.count_tokens(["unknown"])


def test_a_tokenizer_that_went_away_is_a_sentence(settings: Settings, tiny_folder: Folder) -> None:
    folder = tiny_folder()
    embedder = create_onnx(settings(name=str(folder)))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EmbeddingError, match="cannot be read: No such file or directory"):
        embedder.count_tokens(["red"])
