"""How a window is dealt out over lists of several lengths."""

from hypothesis import given
from hypothesis import strategies as st

from haiku.rag.federation.listing import interleaved

sizes = st.lists(st.integers(0, 12), max_size=5)


def dealt(lengths: list[int]) -> list[tuple[int, int]]:
    """Every item by list and place, dealt out one each in turn."""
    longest = max(lengths, default=0)
    return [(index, place) for place in range(longest) for index, size in enumerate(lengths) if place < size]


@given(sizes, st.integers(0, 70))
def test_a_position_is_what_dealing_one_by_one_gives(lengths: list[int], position: int) -> None:
    before = dealt(lengths)[:position]
    assert interleaved(lengths, position) == [
        sum(1 for index, _ in before if index == wanted) for wanted in range(len(lengths))
    ]


@given(sizes, st.integers(1, 7))
def test_consecutive_windows_neither_repeat_nor_skip(lengths: list[int], window: int) -> None:
    seen: list[tuple[int, int]] = []
    for offset in range(0, sum(lengths) + window, window):
        starts, ends = interleaved(lengths, offset), interleaved(lengths, offset + window)
        page = [(index, place) for index in range(len(lengths)) for place in range(starts[index], ends[index])]
        assert len(page) == max(min(window, sum(lengths) - offset), 0)
        seen += page
    assert sorted(seen) == sorted(dealt(lengths))
    assert len(set(seen)) == len(seen)


def test_a_long_list_costs_no_step_an_item() -> None:
    assert interleaved([10**12, 3], 10**9) == [10**9 - 3, 3]
