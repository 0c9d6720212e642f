"""How many rows hold each term of a table, counted from its text at once."""

from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Tokenize = Callable[[str], list[str]]
"""Takes a text apart as the index does."""


class Vocabulary:
    """The terms of the rows' texts, and for each the number of rows that hold it; never changed once it is made.

    Blocking: about half a second for a million words. A text is split at blanks, and each different run is taken apart
    once: no word of any script reaches over a blank.
    """

    def __init__(self, texts: pa.ChunkedArray, tokenize: Tokenize) -> None:
        runs = pc.utf8_split_whitespace(texts).combine_chunks()
        encoded = runs.flatten().dictionary_encode()
        terms, of_run, starts = _terms_of(encoded.dictionary.to_pylist(), tokenize)
        rows, found = _pairs(pc.list_parent_indices(runs).to_numpy(), encoded.indices.to_numpy(), of_run, starts)
        pairs = np.sort(rows * len(terms) + found)
        counts = np.bincount(pairs[np.diff(pairs, prepend=-1) > 0] % max(len(terms), 1), minlength=len(terms))
        order = sorted(range(len(terms)), key=terms.__getitem__)
        self._terms = pa.array([terms[place] for place in order], pa.large_string())
        self._counts: NDArray[np.int32] = counts[order].astype(np.int32)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return int(self._terms.nbytes + self._counts.nbytes)

    def count(self, term: str) -> int:
        """How many rows hold a term, in the form that the index has it."""
        place = bisect_left(range(len(self._terms)), term, key=lambda index: self._terms[index].as_py())
        return int(self._counts[place]) if place < len(self._terms) and self._terms[place].as_py() == term else 0


def _terms_of(runs: Sequence[str], tokenize: Tokenize) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """The different terms; the places among them of every run's terms, one run after the other; where each begins."""
    plain = [run for run in runs if run.isascii() and run.isalnum()]
    at_once = tokenize(" ".join(plain))
    single = dict(zip(plain, at_once, strict=True)) if len(at_once) == len(plain) else {}
    places: dict[str, int] = {}
    of_run: list[int] = []
    starts = [0]
    for run in runs:
        tokens = [single[run]] if run in single else tokenize(run)
        of_run += [places.setdefault(token, len(places)) for token in tokens]
        starts.append(len(of_run))
    return list(places), np.array(of_run, np.int64), np.array(starts, np.int64)


def _pairs(
    rows: NDArray[np.int64], runs: NDArray[np.int32], of_run: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each row with each of its terms, from each row with each of its runs."""
    lengths = np.diff(starts)[runs]
    ends = np.cumsum(lengths)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return np.repeat(rows, lengths).astype(np.int64), of_run[np.repeat(starts[runs], lengths) + within]
