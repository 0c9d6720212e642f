"""Texts as the vectors of their tokens, by the model of the embedder `local`: what late interaction compares."""

import sys
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.embedder import Vectors
from haiku.rag.embedders.local.batches import batches
from haiku.rag.embedders.local.embedder import MAX_TOKENS, minilm_model, minilm_tokenizer
from haiku.rag.embedders.local.pooling import unit
from haiku.rag.embedders.local.tokens import Window, even_parts, segments

FRAME = slice(1, -1)
"""A sequence without the two special tokens that the model wants, one before a text and one after it."""
LONG_TOGETHER = 3
"""Texts of several windows that are read together."""


@dataclass(frozen=True)
class TokenVectors:
    """A text's tokens as `ids`, of shape `(n,)`, and `vectors`, of shape `(n, dimension)`, each of length 1.

    `pooled`, of shape `(dimension,)`, is the vector that the embedder gives the same tokens. The special tokens have
    had their say in all of them and are not among the tokens.
    """

    ids: NDArray[np.int32]
    vectors: Vectors
    pooled: Vectors


@dataclass(frozen=True)
class _Reading:
    """The windows of a text, and what the model has made of them so far, by their place."""

    windows: Sequence[Window]
    hidden: dict[int, Vectors] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.hidden) == len(self.windows)

    def result(self) -> TokenVectors:
        """What has been read of the text."""
        hidden = [self.hidden[place] for place in range(len(self.windows))]
        ids = np.concatenate([np.array(window.ids[FRAME], dtype=np.int32) for window in self.windows])
        vectors = np.concatenate([rows[FRAME] for rows in hidden])
        means = unit(np.stack([rows.mean(axis=0) for rows in hidden]))
        weights = np.array([window.weight for window in self.windows], dtype=np.float32)
        return TokenVectors(ids, unit(vectors), unit((weights @ means)[None, :])[0])


class TokenReader:
    """Reads texts with the model that the embedder `local` has loaded too. Loads it, blocking, when it is made.

    Of a text its first `max_tokens` tokens are read, in windows if they are more than the model reads at once.
    """

    def __init__(self, *, max_tokens: int) -> None:
        self._most = max_tokens
        self._tokenizer = minilm_tokenizer()
        self._model = minilm_model()

    def ids(self, text: str) -> tuple[int, ...]:
        """The ids of a text's tokens."""
        return tuple(number for window in self._whole([text]) for number in window.ids[FRAME])

    def read(self, texts: Sequence[str]) -> Iterator[list[tuple[int, TokenVectors]]]:
        """Each step runs the model on one batch and gives the texts that it has completed, with their numbers.

        A text's vectors do not depend on the other texts. Blocking.
        """
        for group in self._groups(texts):
            readings = dict(group)
            places = [(number, place) for number, reading in group for place in range(len(reading.windows))]
            windows = [replace(readings[number].windows[place], text=nth) for nth, (number, place) in enumerate(places)]
            for batch in batches(windows):
                for window, hidden in zip(batch, self._model.token_vectors([each.ids for each in batch]), strict=True):
                    number, place = places[window.text]
                    readings[number].hidden[place] = hidden
                touched = sorted({places[window.text][0] for window in batch})
                done = [number for number in touched if readings[number].complete]
                yield [(number, readings.pop(number).result()) for number in done]

    def _groups(self, texts: Sequence[str]) -> Iterator[list[tuple[int, _Reading]]]:
        """The texts of one window, and a few of the longer ones at a time: batches of windows of many long texts would
        complete them all at the very end.
        """
        beginnings = [next(segments(text.strip())) for text in texts]
        readings = [_Reading(list(self._cut(window))) for window in self._whole(beginnings)]
        numbered = sorted(enumerate(readings), key=lambda pair: len(pair[1].windows))
        long = bisect(numbered, 1, key=lambda pair: len(pair[1].windows))
        yield numbered[:long]
        for start in range(long, len(numbered), LONG_TOGETHER):
            yield numbered[start : start + LONG_TOGETHER]

    def _whole(self, texts: Sequence[str]) -> Iterator[Window]:
        """Each text as one sequence, however long."""
        return self._tokenizer.windows(list(enumerate(texts)), prefix="", room=lambda _: sys.maxsize)

    def _cut(self, whole: Window) -> Iterator[Window]:
        """The first tokens of a sequence, in as many windows as the model needs."""
        ids = list(whole.ids[FRAME])[: self._most]
        for part in even_parts(ids, MAX_TOKENS):
            yield Window(whole.text, (whole.ids[0], *part, whole.ids[-1]), max(1, len(part)))
