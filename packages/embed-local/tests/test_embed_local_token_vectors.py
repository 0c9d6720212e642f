"""The vectors of a text's tokens, and the one model that everybody shares."""

import gc
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from haiku.rag.embedders.local.embedder import minilm_model, minilm_tokenizer
from haiku.rag.embedders.local.model import EncoderModel
from haiku.rag.embedders.local.scripts import latin_share
from haiku.rag.embedders.local.shared import Shared
from haiku.rag.embedders.local.text_embedder import TextEmbedder
from haiku.rag.embedders.local.token_vectors import TokenReader, TokenVectors
from haiku.rag.errors import EmbeddingError

pytestmark = pytest.mark.anyio

TEXTS = ("The bridge was rebuilt in 1926.", "", "Owls hunt at night. " * 70, "fen", "Yeast makes gas. " * 40)


@pytest.fixture(scope="module")
def reader() -> TokenReader:
    return TokenReader(max_tokens=600)


def read(reader: TokenReader, *texts: str) -> list[TokenVectors]:
    found = dict(pair for done in reader.read(texts) for pair in done)
    return [found[number] for number in range(len(texts))]


async def test_a_text_has_a_vector_of_length_one_for_each_of_its_tokens(
    reader: TokenReader, local: TextEmbedder
) -> None:
    for text, count, tokens in zip(TEXTS, local.count_tokens(TEXTS), read(reader, *TEXTS), strict=True):
        assert tuple(tokens.ids) == reader.ids(text)
        assert tokens.vectors.shape == (count, 384)
        np.testing.assert_allclose(np.linalg.norm(tokens.vectors, axis=1), 1, atol=1e-5)


async def test_its_own_vector_is_the_one_that_the_embedder_gives_it(reader: TokenReader, local: TextEmbedder) -> None:
    expected = await local.embed_documents(TEXTS)
    found = np.stack([tokens.pooled for tokens in read(reader, *TEXTS)])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_vectors_do_not_depend_on_the_other_texts(reader: TokenReader) -> None:
    for text, together in zip(TEXTS, read(reader, *TEXTS), strict=True):
        [alone] = read(reader, text)
        np.testing.assert_allclose(alone.vectors, together.vectors, atol=1e-5)


def test_of_a_long_text_the_first_tokens_are_read_as_if_there_were_no_others() -> None:
    short = TokenReader(max_tokens=300)
    text = "Owls hunt at night. " * 60
    [whole, longer] = read(short, text, f"  {text} Sailors tie knots." * 50)
    assert len(longer.ids) == 300
    np.testing.assert_allclose(whole.vectors, longer.vectors, atol=1e-5)


def test_each_step_reads_one_batch_and_long_texts_are_completed_along_the_way(reader: TokenReader) -> None:
    steps = [[number for number, _ in done] for done in reader.read(["Owls hunt at night. " * 100] * 9)]
    assert sorted(number for done in steps for number in done) == list(range(9))
    assert max(map(len, steps)) <= 3


def test_no_texts_need_no_step(reader: TokenReader) -> None:
    assert list(reader.read([])) == []


def test_a_model_of_one_vector_a_text_has_no_token_vectors(onnx_model: Callable[..., bytes]) -> None:
    mean = ("ReduceMean", ["gathered"], ["sentence_embedding"])
    model = EncoderModel(onnx_model(output="sentence_embedding", tail=[mean], rank=2), where="'tiny'")
    with pytest.raises(EmbeddingError, match="'tiny' has no output of token vectors, only one vector a text"):
        model.token_vectors([(2, 3)])


def test_token_vectors_are_those_of_each_sequence_without_padding(onnx_model: Callable[..., bytes]) -> None:
    found: list[NDArray[np.float32]] = EncoderModel(onnx_model(), where="'tiny'").token_vectors([(2, 3, 4), (5,)])
    assert [rows.tolist() for rows in found] == [[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[4, 0, 0]]]


def test_whoever_asks_for_the_model_gets_the_same_one() -> None:
    assert minilm_model() is minilm_model()
    assert minilm_tokenizer() is minilm_tokenizer()


def test_what_is_shared_is_made_once_and_goes_with_its_last_holder() -> None:
    shared: Shared[set[int]] = Shared()
    made: list[int] = []

    class Held(set[int]):
        """A value that can be referred to weakly."""

    def make() -> Held:
        made.append(1)
        return Held()

    one, two = shared("key", make), shared("key", make)
    assert one is two
    assert shared("other", make) is not one
    del one, two
    gc.collect()
    shared("key", make)
    assert len(made) == 3


@pytest.mark.parametrize(
    ("text", "share"),
    [("the bridge", 1.0), ("Où est l'été", 1.0), ("", 1.0), ("1926?", 1.0), ("橋は", 0.0), ("ab 橋橋", 0.5)],
)
def test_the_latin_share_is_that_of_the_letters(text: str, share: float) -> None:
    assert latin_share(text) == share
