"""What the tests share: the real embedder, loaded once."""

from collections.abc import Callable
from typing import Any

import pytest

from haiku.rag.config import AppConfig
from haiku.rag.embedders.multilingual.embedder import create_multilingual
from haiku.rag.embedders.multilingual.model import Model, load_model
from haiku.rag.embedders.multilingual.packed import PackedModel
from haiku.rag.embedders.multilingual.text_embedder import MultilingualEmbedder
from haiku.rag.embedders.multilingual.weights import installed_weights, read_weights

Make = Callable[..., MultilingualEmbedder]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def packed() -> PackedModel:
    return PackedModel(read_weights(installed_weights()))


@pytest.fixture(scope="session")
def model() -> Model:
    return load_model(None)


@pytest.fixture(scope="session")
def make(model: Model) -> Make:
    """Makes an embedder by its configuration's keys, with the model that is loaded already."""

    def build(**settings: Any) -> MultilingualEmbedder:
        embedder = create_multilingual(AppConfig.model_validate({"embeddings": {"model": settings}}))
        embedder._load = lambda: model
        return embedder

    return build


@pytest.fixture(scope="session")
def multilingual(make: Make) -> MultilingualEmbedder:
    return make(provider="multilingual")
