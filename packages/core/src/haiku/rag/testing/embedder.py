# ruff: noqa: D102 - a test's name is its documentation
"""What an embedder keeps.

1. Its identity is known at once, and says a provider, a model and a dimension; it does not change by embedding.
2. Documents become float32 vectors of shape `(n, dimension)`, finite, in their order.
3. A query becomes one vector of shape `(dimension,)`.
4. A text's vector does not depend on its batch.
5. The same text gives the same vector again.
6. No part of a long text is silently left out: what follows changes the vector, or is an `EmbeddingError`.
7. Odd texts (empty, blank, emoji, any script, control characters) give finite vectors.
8. No documents give an array of no rows.
9. Tokens are counted a text, never below 0; a text takes no fewer than its first half.
10. Calls at once give what calls one by one give.
11. Pictures are read where `modalities` says `image`, and are an `EmbeddingError` elsewhere.
12. Closing twice is safe.
13. Where it says which part of a text it reads, that is between 0 and 1, and all of one without letters.
"""

from collections.abc import Sequence

import anyio
import numpy as np
import pytest

from haiku.rag.contracts.embedder import Embedder, LanguageBound, Vectors
from haiku.rag.errors import EmbeddingError

TEXTS = (
    "The bridge was rebuilt after the flood of 1926.",
    "Bread rises because yeast makes gas.",
    "A comet's tail points away from the sun.",
)
ODD_TEXTS = ("", "   \n\t", "🦀🦀 crab", "橋は洪水の後に再建された。", "سد", "a\x07b", "e\u0301", "." * 500)


class EmbedderContract:
    """Override `embedder`, and `picture` where it reads pictures."""

    pytestmark = pytest.mark.anyio
    tolerance = 1e-5
    """How far two computations of one vector may lie apart, by component."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The event loop of these tests."""
        return "asyncio"

    @pytest.fixture
    def embedder(self) -> Embedder:
        """The embedder under test."""
        raise NotImplementedError("override the fixture 'embedder'")  # pragma: no cover - a subclass overrides it

    @pytest.fixture
    def picture(self) -> bytes:
        """An encoded picture, for an embedder that reads them."""
        return b"\x89PNG\r\n\x1a\n"

    def _assert_same(self, left: Vectors, right: Vectors) -> None:
        np.testing.assert_allclose(left, right, atol=self.tolerance, rtol=0)

    async def test_01_its_identity_is_known_and_does_not_change(self, embedder: Embedder) -> None:
        identity = embedder.identity
        assert identity.provider
        assert identity.model
        assert identity.dimension > 0
        assert embedder.max_tokens > 0
        assert "text" in embedder.modalities
        await embedder.embed_query(TEXTS[0])
        assert embedder.identity == identity

    async def test_02_documents_become_finite_rows_in_their_order(self, embedder: Embedder) -> None:
        vectors = await embedder.embed_documents(TEXTS)
        assert vectors.shape == (len(TEXTS), embedder.identity.dimension)
        assert vectors.dtype == np.float32
        assert np.isfinite(vectors).all()
        backwards = await embedder.embed_documents(TEXTS[::-1])
        self._assert_same(vectors, backwards[::-1])

    async def test_03_a_query_becomes_one_vector(self, embedder: Embedder) -> None:
        vector = await embedder.embed_query(TEXTS[0])
        assert vector.shape == (embedder.identity.dimension,)
        assert vector.dtype == np.float32
        assert np.isfinite(vector).all()

    async def test_04_a_vector_does_not_depend_on_its_batch(self, embedder: Embedder) -> None:
        long_text = " ".join(TEXTS * 20)
        together = await embedder.embed_documents([TEXTS[0], long_text, "short", TEXTS[1]])
        alone = await embedder.embed_documents([TEXTS[0]])
        self._assert_same(together[0], alone[0])

    async def test_05_the_same_text_gives_the_same_vector(self, embedder: Embedder) -> None:
        first, second = await embedder.embed_query(TEXTS[0]), await embedder.embed_query(TEXTS[0])
        self._assert_same(first, second)
        one, other, different = await embedder.embed_documents([TEXTS[0], TEXTS[0], TEXTS[1]])
        self._assert_same(one, other)
        assert not np.allclose(one, different, atol=self.tolerance)

    async def test_06_no_part_of_a_long_text_is_silently_left_out(self, embedder: Embedder) -> None:
        per_sentence = max(embedder.count_tokens([TEXTS[0]])[0], 1)
        head = " ".join([TEXTS[0]] * (2 * embedder.max_tokens // per_sentence + 1))
        try:
            plain, tailed = await embedder.embed_documents([head, " ".join([head, *TEXTS[1:] * 40])])
        except EmbeddingError:  # pragma: no cover - an embedder may refuse, and none here does
            return
        assert not np.allclose(plain, tailed, atol=self.tolerance)

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=ascii)
    async def test_07_odd_texts_give_finite_vectors(self, embedder: Embedder, text: str) -> None:
        assert np.isfinite(await embedder.embed_documents([text, TEXTS[0]])).all()
        assert np.isfinite(await embedder.embed_query(text)).all()

    async def test_08_no_documents_give_no_rows(self, embedder: Embedder) -> None:
        vectors = await embedder.embed_documents([])
        assert vectors.shape == (0, embedder.identity.dimension)

    def test_09_tokens_are_counted_a_text(self, embedder: Embedder) -> None:
        whole = " ".join(TEXTS)
        counts = embedder.count_tokens(["", TEXTS[0], whole])
        assert len(counts) == 3
        assert counts[0] >= 0
        assert 0 < counts[1] < counts[2]
        assert embedder.count_tokens([]) == []

    async def test_10_calls_at_once_give_what_calls_one_by_one_give(self, embedder: Embedder) -> None:
        apart = [await embedder.embed_documents([text]) for text in TEXTS]
        together = await _at_once(embedder, TEXTS)
        for left, right in zip(apart, together, strict=True):
            self._assert_same(left, right)

    async def test_11_pictures_are_read_or_refused(self, embedder: Embedder, picture: bytes) -> None:
        if "image" not in embedder.modalities:
            with pytest.raises(EmbeddingError):
                await embedder.embed_query(picture)
            with pytest.raises(EmbeddingError):
                await embedder.embed_documents([picture])
            return
        assert (await embedder.embed_query(picture)).shape == (embedder.identity.dimension,)
        mixed = await embedder.embed_documents([TEXTS[0], picture])
        assert mixed.shape == (2, embedder.identity.dimension)
        assert np.isfinite(mixed).all()
        self._assert_same(mixed[0], (await embedder.embed_documents([TEXTS[0]]))[0])

    async def test_12_closing_twice_is_safe(self, embedder: Embedder) -> None:
        await embedder.embed_query(TEXTS[0])
        await embedder.close()
        await embedder.close()

    def test_13_it_reads_a_part_of_each_text(self, embedder: Embedder) -> None:
        if not isinstance(embedder, LanguageBound):
            pytest.skip("it does not say what it reads")
        assert all(0.0 <= embedder.reads(text) <= 1.0 for text in (*TEXTS, *ODD_TEXTS))
        assert embedder.reads("") == embedder.reads("1926, 3.14!") == 1.0


async def _at_once(embedder: Embedder, texts: Sequence[str]) -> list[Vectors]:
    found: dict[int, Vectors] = {}

    async def embed(index: int, text: str) -> None:
        found[index] = await embedder.embed_documents([text])

    async with anyio.create_task_group() as group:
        for index, text in enumerate(texts):
            group.start_soon(embed, index, text)
    return [found[index] for index in range(len(texts))]
