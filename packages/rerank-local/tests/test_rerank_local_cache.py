"""What is remembered of passages, and how much of it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from haiku.rag.rerankers.local.cache import PassageCache, key_of
from haiku.rag.rerankers.local.compact import CompactPassage, compact


def passage(tokens: int = 1) -> CompactPassage:
    return compact(np.ones((tokens, 8), dtype=np.float32), np.ones(8, dtype=np.float32))


ONE = passage().nbytes


def test_what_was_asked_for_longest_ago_goes_first() -> None:
    cache = PassageCache(2 * ONE)
    cache.put(b"a", passage())
    cache.put(b"b", passage())
    assert list(cache.found([b"a"])) == [b"a"]
    cache.put(b"c", passage())
    assert set(cache.found([b"a", b"b", b"c"])) == {b"a", b"c"}


def test_a_passage_that_is_larger_than_the_bound_is_not_kept_and_drives_nothing_out() -> None:
    cache = PassageCache(2 * ONE)
    cache.put(b"a", passage())
    cache.put(b"b", passage(1000))
    assert set(cache.found([b"a", b"b"])) == {b"a"}


def test_a_passage_that_is_put_again_counts_once() -> None:
    cache = PassageCache(5 * ONE)
    cache.put(b"a", passage())
    cache.put(b"a", passage())
    assert (len(cache), cache.nbytes) == (1, ONE)


def test_clearing_forgets_everything() -> None:
    cache = PassageCache(5 * ONE)
    cache.put(b"a", passage())
    cache.clear()
    assert (len(cache), cache.nbytes, cache.found([b"a"])) == (0, 0, {})


@given(st.integers(0, 5000), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 200)), max_size=40))
def test_whatever_is_put_the_bound_holds_and_the_sum_is_right(limit: int, puts: list[tuple[int, int]]) -> None:
    cache = PassageCache(limit)
    for number, tokens in puts:
        cache.put(bytes([number]), passage(tokens))
        assert cache.nbytes <= limit
    held = cache.found(bytes([number]) for number in range(10))
    assert cache.nbytes == sum(each.nbytes for each in held.values())
    assert len(cache) == len(held)


def test_keys_tell_texts_apart_whatever_they_hold() -> None:
    texts = ["", " ", "a", "A", "\ud800", "橋", "\0"]
    assert len({key_of(text) for text in texts}) == len(texts)
