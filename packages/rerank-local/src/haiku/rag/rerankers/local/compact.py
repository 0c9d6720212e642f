"""A passage's token vectors in a quarter of their memory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.embedder import Vectors

STEPS = 127
OVERHEAD = 600
"""Bytes that a passage costs beside its arrays' contents: their headers, its key and its place in the cache."""


@dataclass(frozen=True)
class CompactPassage:
    """Token vectors as `codes`, of shape `(n, dimension)`, which times `scales`, of shape `(n,)`, are the vectors.

    `pooled` is the passage's own vector.
    """

    codes: NDArray[np.int8]
    scales: Vectors
    pooled: NDArray[np.float16]

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return self.codes.nbytes + self.scales.nbytes + self.pooled.nbytes + OVERHEAD


def compact(vectors: Vectors, pooled: Vectors) -> CompactPassage:
    """The passage with each token's numbers rounded to 255 steps between its own largest and its negative."""
    scales = np.abs(vectors).max(axis=1, initial=np.finfo(np.float32).tiny) / np.float32(STEPS)
    codes = np.rint(vectors / scales[:, None]).astype(np.int8)
    return CompactPassage(codes, scales.astype(np.float32), pooled.astype(np.float16))
