"""Which texts are read, and how: long ones, odd ones, prefixes."""

from collections.abc import Callable

import numpy as np
import pytest

from haiku.rag.embedders.multilingual import tokenizer
from haiku.rag.embedders.multilingual.text_embedder import MultilingualEmbedder
from haiku.rag.errors import EmbeddingError

pytestmark = pytest.mark.anyio

Make = Callable[..., MultilingualEmbedder]


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t  ", "\u200b", "\x00", "a\x00b", "\ud800", "\U0001f600" * 300, "a" * 5000, "\u0301" * 3000]
)
async def test_odd_texts_have_a_vector_of_length_one(multilingual: MultilingualEmbedder, text: str) -> None:
    documents = await multilingual.embed_documents([text, "text"])
    vectors = np.array([*documents, await multilingual.embed_query(text)])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


async def test_a_lone_surrogate_is_read_as_a_space(multilingual: MultilingualEmbedder) -> None:
    first, second = await multilingual.embed_documents(["one\ud800two", "one two"])
    np.testing.assert_array_equal(first, second)


def test_two_hundred_thousand_characters_are_counted_to_the_last(multilingual: MultilingualEmbedder) -> None:
    per_word = multilingual.count_tokens(["stone"])[0]
    text = "stone " * 33_000 + "lamp"
    assert len(text) > 195_000
    assert multilingual.count_tokens([text]) == [33_000 * per_word + multilingual.count_tokens(["lamp"])[0]]


async def test_what_stands_behind_many_segments_counts(
    multilingual: MultilingualEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizer, "SEGMENT", 100)
    text = "石" * 1000
    same, other = await multilingual.embed_documents([text, text + "橋は洪水の後に再建された。" * 10])
    assert float(same @ other) < 0.999


async def test_a_long_text_is_the_mean_of_its_windows(make: Make) -> None:
    embedder = make(max_tokens=20)
    count = embedder.count_tokens(["river", "mountain"])
    left, right = "river " * (20 // count[0]), "mountain " * (20 // count[1])
    assert embedder.count_tokens([left, right]) == [20, 20]
    halves = await embedder.embed_documents([left, right])
    mean = halves.sum(axis=0)
    whole = (await embedder.embed_documents([left + right]))[0]
    np.testing.assert_allclose(whole, mean / np.linalg.norm(mean), atol=1e-5)


async def test_a_vector_does_not_depend_on_its_batch(multilingual: MultilingualEmbedder) -> None:
    texts = ["one", "", "A sentence about rivers. " * 9, "橋は洪水の後に再建された。", "x y " * 300, "  "]
    together = await multilingual.embed_documents(texts * 3)
    for number, text in enumerate(texts):
        alone = (await multilingual.embed_documents([text]))[0]
        for row in (number, number + 6, number + 12):
            np.testing.assert_allclose(together[row], alone, atol=1e-5)


async def test_texts_of_many_portions_keep_their_vectors(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"number {number}" for number in range(30)]
    whole = await make().embed_documents(texts)
    monkeypatch.setattr("haiku.rag.embedders.multilingual.text_embedder.PORTION_TOKENS", 40)
    np.testing.assert_allclose(await make().embed_documents(texts), whole, atol=1e-5)


async def test_queries_and_documents_have_the_prefixes_of_the_model(make: Make) -> None:
    usual, plain = make(), make(query_prefix="", document_prefix="")
    text = "How tall is the tower?"
    np.testing.assert_allclose(await usual.embed_query(text), await plain.embed_query(f"query: {text}"), atol=1e-6)
    np.testing.assert_allclose(
        await usual.embed_documents([text]), await plain.embed_documents([f"passage: {text}"]), atol=1e-6
    )


async def test_prefixes_can_be_others(make: Make) -> None:
    other, plain = make(query_prefix="question:"), make(query_prefix="")
    np.testing.assert_allclose(
        await other.embed_query("how tall"), await plain.embed_query("question: how tall"), atol=1e-6
    )


async def test_a_prefix_that_leaves_no_room_is_an_error(make: Make) -> None:
    with pytest.raises(EmbeddingError) as caught:
        await make(document_prefix="word " * 600).embed_documents(["text"])
    assert str(caught.value) == (
        "embedder 'multilingual': the prefix has 600 tokens and leaves no room for text: 'multilingual-e5-small' reads "
        "512 at a time. Shorten query_prefix and document_prefix in embeddings.model."
    )


async def test_a_long_prefix_narrows_the_windows(make: Make) -> None:
    vectors = await make(document_prefix="word " * 500).embed_documents(["Trains run on rails. " * 10])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


async def test_pictures_are_refused(multilingual: MultilingualEmbedder) -> None:
    with pytest.raises(EmbeddingError, match="embedder 'multilingual' reads text only and was given an image"):
        await multilingual.embed_documents(["text", b"\x89PNG"])
