"""From token vectors to one vector a sequence."""

import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.embedder import Vectors
from haiku.rag.embedders.local.recipe import Pooling

SMALLEST_NORM = 1e-12


def pool(hidden: Vectors, mask: NDArray[np.int64], pooling: Pooling) -> Vectors:
    """The vectors, of shape `(n, dimension)`, of token vectors of shape `(n, tokens, dimension)`.

    `mask` is 1 for a token and 0 for padding, which is on the right; every sequence has at least one token.
    """
    if pooling == "cls":
        return np.asarray(hidden[:, 0])
    lengths = mask.sum(axis=1)
    if pooling == "last":
        return np.asarray(hidden[np.arange(len(hidden)), lengths - 1])
    total = np.einsum("ntd,nt->nd", hidden, mask.astype(np.float32))
    return np.asarray(total / lengths[:, None], dtype=np.float32)


def unit(vectors: Vectors) -> Vectors:
    """The vectors at length 1; a vector of zeros stays as it is."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, SMALLEST_NORM), dtype=np.float32)
