"""An ONNX text encoder: what it is fed, which output is read, and how its failures are reported."""

import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.embedder import Vectors
from haiku.rag.embedders.local.loading import library
from haiku.rag.embedders.local.pooling import pool
from haiku.rag.embedders.local.recipe import Pooling
from haiku.rag.errors import EmbeddingError

FEEDS = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})
TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings")
POOLED_OUTPUTS = ("sentence_embedding", "pooler_output")
INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
MOST_THREADS = 8
QUANTISES_AT_RUN_TIME = b"DynamicQuantize"
Sequences = Sequence[tuple[int, ...]]
T = TypeVar("T")


def threads() -> int:
    """The cores that this process may use, up to the number beyond which small models gain nothing."""
    affinity = getattr(os, "sched_getaffinity", None)
    available = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(MOST_THREADS, available)


class EncoderModel:
    """A loaded model. It may be called from several threads.

    A model reads the sequences of a call together, padded to the longest, and one call at a time. Sequences stay apart
    where they would change each other: in a model that scales its activations by all that is there, and in one that
    has no mask and would take the padding for text. With `side_by_side`, sequences that stay apart are read at the
    same time, each on one core: faster than one after the other on all of them, where a model is small.

    `weights` are the contents of a file that the model's constants are pieces of, by its name.
    """

    def __init__(
        self,
        source: bytes | Path,
        *,
        where: str,
        weights: tuple[str, bytes] | None = None,
        side_by_side: bool = False,
    ) -> None:
        self._where = where
        at_once = threads() if side_by_side else 1
        self._turn = BoundedSemaphore(at_once)
        self._workers = ThreadPoolExecutor(at_once, "embedding") if side_by_side else None
        self._session = self._open(source, weights, cores=1 if side_by_side else threads())
        self._feeds = {given.name: INTEGERS.get(given.type) for given in self._session.get_inputs()}
        self._check_feeds()
        self._output, self.pooled = self._choose_output()
        self._apart = "attention_mask" not in self._feeds or quantises_at_run_time(source)

    def run(self, sequences: Sequences, pooling: Pooling) -> Vectors:
        """The vectors, of shape `(len(sequences), dimension)`, of sequences of token ids, none of them empty."""

        def work(some: Sequences) -> Vectors:
            hidden, mask = self._hidden(some)
            return hidden if self.pooled else pool(hidden, mask, pooling)

        return np.concatenate(list(self._read(work, sequences)))

    def token_vectors(self, sequences: Sequences) -> list[Vectors]:
        """For each sequence the vectors of all its tokens, of shape `(tokens, dimension)`, as the model gives them.

        EmbeddingError for a model that gives one vector a text.
        """
        if self.pooled:
            raise EmbeddingError(f"{self._where} has no output of token vectors, only one vector a text.")
        read = self._read(lambda some: self._hidden(some)[0], sequences)
        rows = [row for hidden in read for row in hidden]
        return [row[: len(ids)] for row, ids in zip(rows, sequences, strict=True)]

    def _read(self, work: Callable[[Sequences], T], sequences: Sequences) -> Iterator[T]:
        """What `work` makes of the sequences: of all at once, or of each."""
        parts = [[each] for each in sequences] if self._apart else [sequences]
        return map(work, parts) if self._workers is None or len(parts) == 1 else self._workers.map(work, parts)

    def _hidden(self, sequences: Sequences) -> tuple[Vectors, NDArray[np.int64]]:
        """What the model makes of sequences that are padded to the longest, and the mask of what is no padding."""
        lengths = np.array([len(ids) for ids in sequences])
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        tokens = np.zeros_like(mask)
        tokens[mask.astype(bool)] = np.concatenate([np.array(ids, dtype=np.int64) for ids in sequences])
        return self._run(tokens, mask), mask

    def _run(self, tokens: NDArray[np.int64], mask: NDArray[np.int64]) -> Vectors:
        values = {
            "input_ids": tokens,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
            "position_ids": np.broadcast_to(np.arange(mask.shape[1]), mask.shape),
        }
        feeds = {name: values[name].astype(kind) for name, kind in self._feeds.items()}
        try:
            with self._turn:
                result: Vectors = self._session.run([self._output], feeds)[0].astype(np.float32, copy=False)
        except Exception as error:  # the runtime's errors share no type but this one
            raise EmbeddingError(f"{self._where} failed on a text: {_reason(error)}") from error
        if result.ndim != (2 if self.pooled else 3) or len(result) != len(mask):
            raise EmbeddingError(
                f"{self._where} returned an array of shape {result.shape}, which is not one of vectors."
            )
        return result

    def _open(self, source: bytes | Path, weights: tuple[str, bytes] | None, *, cores: int) -> Any:
        runtime = library("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = cores
        options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # it pays for one shape, and here every batch has its own
        options.log_severity_level = 4  # what it would print is in the error that is raised
        given = source if isinstance(source, bytes) else os.fspath(source)
        if weights is not None:
            name, data = weights
            options.add_external_initializers_from_files_in_memory([name], [data], [len(data)])
        try:
            return runtime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime's errors share no type but this one
            raise EmbeddingError(f"{self._where} is not a model that can be loaded: {_reason(error, given)}") from error

    def _check_feeds(self) -> None:
        for name, kind in self._feeds.items():
            if name not in FEEDS or kind is None:
                raise EmbeddingError(
                    f"{self._where} wants the input '{name}', which a text encoder is not given. Export the model for "
                    "feature extraction, without a cache of past keys."
                )
        if "input_ids" not in self._feeds:
            raise EmbeddingError(f"{self._where} has no input 'input_ids', so it is not a text encoder.")

    def _choose_output(self) -> tuple[str, bool]:
        """The output to read, and whether it is already one vector a text. Token vectors are preferred."""
        ranks = {given.name: len(given.shape) for given in self._session.get_outputs()}
        for names, rank in ((TOKEN_OUTPUTS, 3), (tuple(ranks), 3), (POOLED_OUTPUTS, 2), (tuple(ranks), 2)):
            for name in names:
                if ranks.get(name) == rank:
                    return name, rank == 2
        raise EmbeddingError(f"{self._where} has no output of token vectors or text vectors.")


def quantises_at_run_time(source: bytes | Path) -> bool:
    """Whether the model has an operator that computes a scale over the whole batch; operators stand in it by name."""
    if isinstance(source, bytes):
        return QUANTISES_AT_RUN_TIME in source
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(QUANTISES_AT_RUN_TIME) >= 0


def _reason(error: Exception, source: bytes | str = b"") -> str:
    """The first line of the runtime's message, without the resolved path of the model."""
    lines = str(error).strip().splitlines()
    line = lines[0] if lines else type(error).__name__
    return line.replace(source, Path(source).name) if isinstance(source, str) else line
