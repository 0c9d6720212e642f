"""How work is shared: loading once, taking turns, stopping when cancelled, and bounded portions."""

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.to_thread
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haiku.rag.contracts.embedder import Vectors
from haiku.rag.embedders.local.batches import BATCH_SEQUENCES, BATCH_TOKENS, PORTION_PIECES, batches, portions
from haiku.rag.embedders.local.loading import Once
from haiku.rag.embedders.local.model import EncoderModel
from haiku.rag.embedders.local.recipe import Pooling, Recipe
from haiku.rag.embedders.local.text_embedder import TextEmbedder
from haiku.rag.embedders.local.tokens import TextTokenizer, Window, even_parts, segments
from haiku.rag.errors import EmbeddingError

RECIPE = Recipe(provider="onnx", model="tiny", dimension=3, max_tokens=64)

Folder = Callable[..., Path]


class ObservedModel(EncoderModel):
    """The model, which tells when a batch begins."""

    def __init__(self, source: Path, begins: Callable[[], None]) -> None:
        super().__init__(source, where="the model")
        self._begins = begins
        self.runs = 0

    def run(self, sequences: Sequence[tuple[int, ...]], pooling: Pooling) -> Vectors:
        self.runs += 1
        self._begins()
        return super().run(sequences, pooling)


def tokenizer_of(folder: Path) -> TextTokenizer:
    return TextTokenizer((folder / "tokenizer.json").read_bytes(), where="the tokenizer")


@pytest.mark.anyio
async def test_first_calls_at_the_same_time_load_once(tiny_folder: Folder) -> None:
    folder = tiny_folder()
    loads: list[str] = []

    def load() -> EncoderModel:
        loads.append("model")
        return EncoderModel(folder / "model.onnx", where="the model")

    embedder = TextEmbedder(RECIPE, tokenizer=lambda: tokenizer_of(folder), model=load)
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(embedder.embed_query, "red")
    assert loads == ["model"]


def test_a_failed_load_is_tried_again() -> None:
    failures = [EmbeddingError("not yet")]

    def load() -> str:
        if failures:
            raise failures.pop()
        return "ready"

    once = Once(load)
    with pytest.raises(EmbeddingError, match="not yet"):
        once()
    assert once() == once() == "ready"


@pytest.mark.anyio
async def test_a_cancelled_call_stops_after_the_batch_it_is_in(tiny_folder: Folder) -> None:
    folder = tiny_folder()
    scope = anyio.CancelScope()
    model = ObservedModel(folder / "model.onnx", lambda: anyio.from_thread.run_sync(scope.cancel))
    embedder = TextEmbedder(RECIPE, tokenizer=lambda: tokenizer_of(folder), model=lambda: model)
    with scope:
        await embedder.embed_documents(["red"] * 200)
    assert scope.cancelled_caught
    assert model.runs == 1
    model._begins = lambda: None
    assert (await embedder.embed_query("red")).tolist() == [1, 0, 0]


@pytest.mark.anyio
async def test_a_query_does_not_wait_for_a_whole_load(tiny_folder: Folder) -> None:
    folder = tiny_folder()
    started = anyio.Event()
    done: list[str] = []
    model = ObservedModel(folder / "model.onnx", lambda: anyio.from_thread.run_sync(started.set))
    embedder = TextEmbedder(RECIPE, tokenizer=lambda: tokenizer_of(folder), model=lambda: model)

    async def load() -> None:
        await embedder.embed_documents(["red"] * 2000)
        done.append("load")

    async with anyio.create_task_group() as group:
        group.start_soon(load)
        await started.wait()
        await embedder.embed_query("green")
        done.append("query")
    assert done == ["query", "load"]


@pytest.mark.anyio
async def test_texts_of_many_portions_keep_their_vectors(tiny_folder: Folder) -> None:
    folder = tiny_folder()
    embedder = TextEmbedder(
        RECIPE,
        tokenizer=lambda: tokenizer_of(folder),
        model=lambda: EncoderModel(folder / "model.onnx", where="the model"),
    )
    texts = [("red", "green", "blue")[number % 3] for number in range(PORTION_PIECES * 2 + 5)]
    vectors = await embedder.embed_documents(texts)
    np.testing.assert_array_equal(vectors.argmax(axis=1), np.arange(len(texts)) % 3)


@given(st.text(alphabet="ab \n\t", max_size=200), st.integers(1, 30))
def test_segments_joined_are_the_text(text: str, limit: int) -> None:
    found = list(segments(text, limit))
    assert "".join(found) == text
    assert all(len(segment) <= limit for segment in found)


@given(st.text(alphabet="ab ", max_size=200))
def test_segments_are_cut_at_spaces_where_there_are_any(text: str) -> None:
    words = text.split()
    if all(len(word) < 15 for word in words):
        assert [word for segment in segments(text, 20) for word in segment.split()] == words


@given(st.lists(st.integers(), max_size=100), st.integers(1, 20))
def test_parts_hold_every_token_once_and_are_nearly_equal(ids: list[int], room: int) -> None:
    parts = list(even_parts(ids, room))
    sizes = [len(part) for part in parts]
    assert [token for part in parts for token in part] == ids
    assert max(sizes) <= room
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(1, 6000), max_size=60))
def test_batches_hold_every_window_once_and_are_bounded(sizes: list[int]) -> None:
    windows = [Window(number, (1,) * size, size) for number, size in enumerate(sizes)]
    found = batches(windows)
    assert sorted(window.text for batch in found for window in batch) == list(range(len(sizes)))
    for batch in found:
        longest = max(len(window.ids) for window in batch)
        assert len(batch) <= BATCH_SEQUENCES
        assert len(batch) == 1 or len(batch) * longest <= BATCH_TOKENS


@given(st.lists(st.text(max_size=30), max_size=600))
def test_portions_hold_every_text_in_order_and_are_bounded(texts: list[str]) -> None:
    found = list(portions(texts))
    assert [piece for portion in found for piece in portion] == list(enumerate(texts))
    assert all(len(portion) <= PORTION_PIECES for portion in found)
