"""What the configuration may say, and the identity that follows."""

from collections.abc import Callable

import pytest

from haiku.rag.embedders.multilingual.text_embedder import MultilingualEmbedder
from haiku.rag.errors import ConfigError

Make = Callable[..., MultilingualEmbedder]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"name": "bge-m3"},
            (
                "embeddings.model.name: no model 'bge-m3' in embedder 'multilingual'. It has 'multilingual-e5-small', "
                "which is used where no name is given."
            ),
        ),
        (
            {"vector_dim": 512},
            (
                "embeddings.model.vector_dim: vectors of 'multilingual-e5-small' have 384 dimensions, and 512 are "
                "wanted. Remove vector_dim."
            ),
        ),
        (
            {"pooling": "cls"},
            (
                "embeddings.model.pooling: 'multilingual-e5-small' was trained for the mean of its tokens, and 'cls' "
                "is wanted. Remove pooling."
            ),
        ),
        (
            {"normalize": False},
            "embeddings.model.normalize: vectors of 'multilingual-e5-small' always have length 1. Remove normalize.",
        ),
        (
            {"max_tokens": 501},
            (
                "embeddings.model.max_tokens: 'multilingual-e5-small' reads up to 500 of a text's tokens in one piece, "
                "and 501 are wanted. A longer text is read in several pieces anyway."
            ),
        ),
    ],
)
def test_what_the_model_cannot_do_is_refused(make: Make, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(**settings)
    assert str(caught.value) == message


def test_its_own_name_and_dimension_may_be_written_out(make: Make) -> None:
    embedder = make(name="multilingual-e5-small", vector_dim=384, pooling="mean", normalize=True, max_tokens=256)
    assert (embedder.identity.model, embedder.max_tokens) == ("multilingual-e5-small", 256)


@pytest.mark.parametrize(
    ("settings", "prefix"),
    [({}, "passage: "), ({"document_prefix": ""}, ""), ({"document_prefix": "text: ", "query_prefix": "?"}, "text: ")],
)
def test_the_identity_has_the_prefix_that_documents_get(make: Make, settings: dict[str, object], prefix: str) -> None:
    identity = make(**settings).identity
    assert (identity.provider, identity.model, identity.dimension, identity.document_prefix) == (
        "multilingual",
        "multilingual-e5-small",
        384,
        prefix,
    )
