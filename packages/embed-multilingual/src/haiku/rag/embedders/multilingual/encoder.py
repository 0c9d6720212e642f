"""From token ids to vectors."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.embedder import Vectors
from haiku.rag.embedders.multilingual.graph import EMBEDDINGS, HIDDEN, MASK, encoder_graph
from haiku.rag.embedders.multilingual.libraries import imported
from haiku.rag.embedders.multilingual.packed import ZERO, PackedModel, scales, stored_weights
from haiku.rag.errors import EmbeddingError

MOST_THREADS = 8
SILENT = 4


class Encoder:
    """The loaded model. Several threads may use it at once."""

    def __init__(self, packed: PackedModel) -> None:
        self._words = packed.blocks("emb.word", packed.dimension).copy()  # the file's bytes need not stay
        kinds = packed.floats("emb.type")[: packed.dimension]
        self._positions = packed.floats("emb.pos").reshape(-1, packed.dimension) + kinds
        self._session = _session(encoder_graph(packed))

    def vectors(self, sequences: Sequence[Sequence[int]]) -> Vectors:
        """The vectors of sequences of ids, none of them empty: the mean over their tokens, at length 1."""
        longest = max(map(len, sequences))
        ids = np.zeros((len(sequences), longest), dtype=np.int64)
        mask = np.zeros((len(sequences), longest), dtype=np.int32)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        return unit(np.einsum("ntd,nt->nd", self._hidden(ids, mask), mask.astype(np.float32)))

    def _hidden(self, ids: NDArray[np.int64], mask: NDArray[np.int32]) -> Vectors:
        blocks = self._words[ids]
        words = (stored_weights(blocks).astype(np.float32) - ZERO) * scales(blocks)[..., None]
        embeddings = words.reshape(*ids.shape, -1) + self._positions[: ids.shape[1]]
        try:
            found: Vectors = self._session.run([HIDDEN], {EMBEDDINGS: embeddings, MASK: mask})[0]
        except Exception as error:  # the runtime's errors share no type but this one
            raise EmbeddingError(
                f"embedder 'multilingual': ONNX Runtime failed on a text: {_first_line(error)}"
            ) from error
        return found


def unit(vectors: Vectors) -> Vectors:
    """The vectors at length 1. None of them is 0: no text has such a vector."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def threads() -> int:
    """The cores that this process may use, but no more than a small model can make use of."""
    allowed = getattr(os, "sched_getaffinity", None)
    return min(MOST_THREADS, len(allowed(0)) if allowed else os.cpu_count() or 1)


def _session(graph: bytes) -> Any:
    runtime = imported("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads()
    options.enable_mem_pattern = False  # every batch has a shape of its own
    options.log_severity_level = SILENT
    try:
        return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's errors share no type but this one
        raise EmbeddingError(
            f"embedder 'multilingual': ONNX Runtime {runtime.__version__} cannot load the model: {_first_line(error)}. "
            "Install a newer one with: pip install --upgrade onnxruntime."
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
