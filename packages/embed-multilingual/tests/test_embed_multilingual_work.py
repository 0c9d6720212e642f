"""How work is shared: loading once, taking turns, stopping when cancelled, bounded sequences."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import anyio
import anyio.from_thread
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haiku.rag.config import AppConfig
from haiku.rag.contracts.embedder import Vectors
from haiku.rag.embedders.multilingual import tokenizer
from haiku.rag.embedders.multilingual.embedder import create_multilingual
from haiku.rag.embedders.multilingual.encoder import Encoder
from haiku.rag.embedders.multilingual.model import Model
from haiku.rag.embedders.multilingual.sequences import BATCH_SEQUENCES, BATCH_TOKENS, Frame, Window, batches
from haiku.rag.embedders.multilingual.text_embedder import MultilingualEmbedder
from haiku.rag.errors import EmbeddingError

Make = Callable[..., MultilingualEmbedder]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What is called in the worker thread before each batch; the fixture's list is empty until a test fills it."""
    calls: list[Callable[[], object]] = []
    vectors = Encoder.vectors

    def observed(self: Encoder, sequences: Sequence[Sequence[int]]) -> Vectors:
        for call in calls:
            call()
        return vectors(self, sequences)

    monkeypatch.setattr(Encoder, "vectors", observed)
    return calls


@pytest.mark.anyio
async def test_first_calls_at_the_same_time_load_once(model: Model) -> None:
    loads: list[str] = []
    embedder = create_multilingual(AppConfig())

    def load() -> Model:
        loads.append("model")
        return model

    embedder._load = load
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(embedder.embed_query, "red")
    assert loads == ["model"]
    await embedder.close()
    await embedder.embed_query("red")
    assert loads == ["model", "model"]


@pytest.mark.anyio
async def test_a_failed_load_is_tried_again(model: Model) -> None:
    failures = [EmbeddingError("not yet")]
    embedder = create_multilingual(AppConfig())

    def load() -> Model:
        if failures:
            raise failures.pop()
        return model

    embedder._load = load
    with pytest.raises(EmbeddingError, match="not yet"):
        await embedder.embed_query("red")
    assert (await embedder.embed_query("red")).shape == (384,)


@pytest.mark.anyio
async def test_a_cancelled_call_stops_after_the_batch_it_is_in(make: Make, steps: list[Callable[[], object]]) -> None:
    embedder, scope = make(), anyio.CancelScope()
    batches_run: list[int] = []
    steps += [lambda: batches_run.append(1), lambda: anyio.from_thread.run_sync(scope.cancel)]
    with scope:
        await embedder.embed_documents(["red"] * 200)
    assert scope.cancelled_caught
    assert batches_run == [1]
    steps.clear()
    assert (await embedder.embed_query("red")).shape == (384,)


@pytest.mark.anyio
async def test_a_query_does_not_wait_for_a_whole_load(make: Make, steps: list[Callable[[], object]]) -> None:
    embedder, started, loaded = make(), anyio.Event(), anyio.Event()
    steps.append(lambda: anyio.from_thread.run_sync(started.set))

    async def bulk() -> None:
        await embedder.embed_documents(["red"] * 200)
        loaded.set()

    async with anyio.create_task_group() as group:
        group.start_soon(bulk)
        await started.wait()
        await embedder.embed_query("green")
        assert not loaded.is_set()
    assert loaded.is_set()


def test_one_embedder_serves_several_event_loops_at_once(make: Make) -> None:
    embedder = make()
    texts = ["one", "two words", "three words more " * 9]
    with ThreadPoolExecutor(3) as pool:
        first, *others = pool.map(lambda _: anyio.run(embedder.embed_documents, texts), range(3))
    for vectors in others:
        np.testing.assert_allclose(vectors, first, atol=1e-5)


@given(st.lists(st.integers(0, 1000), max_size=100), st.integers(1, 20))
def test_windows_hold_every_token_once_and_are_nearly_equal(ids: list[int], room: int) -> None:
    windows = list(Frame((7, 8), (9,), room).windows(3, ids))
    assert [token for window in windows for token in window.ids[2:-1]] == ids
    assert {(window.text, window.ids[:2], window.ids[-1]) for window in windows} == {(3, (7, 8), 9)}
    assert [window.tokens for window in windows] == [len(window.ids) - 3 for window in windows]
    sizes = [window.tokens for window in windows]
    assert max(sizes) <= room
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(1, 512), max_size=60))
def test_batches_hold_every_window_once_and_are_bounded(sizes: list[int]) -> None:
    found = list(batches(Window(number, (1,) * size, size) for number, size in enumerate(sizes)))
    assert sorted(window.text for batch in found for window in batch) == list(range(len(sizes)))
    for batch in found:
        assert 0 < len(batch) <= BATCH_SEQUENCES
        assert len(batch) * max(len(window.ids) for window in batch) <= BATCH_TOKENS


@given(st.text(alphabet="ab \n\t橋", max_size=200), st.integers(2, 30))
def test_segments_joined_are_the_text_and_break_no_word_that_fits(text: str, limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer, "SEGMENT", limit)
        found = list(tokenizer.segments(text))
    assert "".join(found) == text
    assert all(len(segment) <= limit for segment in found)
    words = text.split()
    if all(len(word) < limit // 2 for word in words):
        assert [word for segment in found for word in segment.split()] == words
