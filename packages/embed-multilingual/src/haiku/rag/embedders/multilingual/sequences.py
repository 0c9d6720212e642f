"""The sequences in which the model reads texts, and how many of them it reads at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

BATCH_SEQUENCES = 8
BATCH_TOKENS = 1024
"""More at a time is no faster on a few cores, and costs memory that the runtime keeps."""


@dataclass(frozen=True, slots=True)
class Window:
    """A sequence of token ids, the number of the text that it is from, and how many of the text's tokens it has."""

    text: int
    ids: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Frame:
    """The ids before and after a text's own, and the most tokens of a text that fit between them."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    room: int

    def windows(self, text: int, ids: Sequence[int]) -> Iterator[Window]:
        """A text's tokens in as few windows as hold them, of nearly equal length. A text without tokens has one."""
        count = max(1, -(-len(ids) // self.room))
        edges = [number * len(ids) // count for number in range(count + 1)]
        for start, end in pairwise(edges):
            yield Window(text, (*self.before, *ids[start:end], *self.after), end - start)


def batches(windows: Iterable[Window]) -> Iterator[list[Window]]:
    """The windows, the shortest first, in batches of a bounded number of sequences and of tokens, padding included."""
    batch: list[Window] = []
    for window in sorted(windows, key=lambda window: len(window.ids)):
        if batch and (len(batch) == BATCH_SEQUENCES or (len(batch) + 1) * len(window.ids) > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch
