"""A loaded cross-encoder, and the scores that it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from haiku.rag.errors import RerankError
from haiku.rag.rerankers.sentence_transformers.library import library

if TYPE_CHECKING:
    from haiku.rag.rerankers.sentence_transformers.section import CrossEncoderSection

Scores = NDArray[np.float64]
UNSUITABLE = (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, ImportError)
"""What loading and running raise for files, settings and devices that do not fit."""


class CrossEncoderModel:
    """The model in a folder. Constructing loads it; `RerankError` where that fails. Messages call it `name`."""

    def __init__(self, folder: Path, name: str, section: CrossEncoderSection) -> None:
        self._name = name
        self._section = section
        self._turn = Lock()
        self._torch = library("torch")
        try:
            self._encoder = self._load(library("sentence_transformers").CrossEncoder, folder)
        except UNSUITABLE as error:
            raise RerankError(self._unloadable(error)) from error
        labels = self._encoder.num_labels
        if labels != 1:
            raise RerankError(
                f"model '{name}' gives {labels} numbers for a passage, and a reranker needs one. Choose another model."
            )

    def scores(self, query: str, passages: Sequence[str], given_up: Event) -> Scores:
        """The score of each passage, computed in one batch; zeros where nobody waits for them when their turn comes."""
        pairs = [(_valid(query), _valid(passage)) for passage in passages]
        try:
            with self._turn:
                if given_up.is_set():
                    return np.zeros(len(pairs))
                logits = self._encoder.predict(
                    pairs,
                    batch_size=len(pairs),
                    show_progress_bar=False,
                    activation_fn=self._torch.nn.Identity(),
                )
        except UNSUITABLE as error:
            text = f"model '{self._name}' failed on a batch of {len(pairs)} passages: {type(error).__name__}."
            raise RerankError(text) from error
        numbers = np.asarray(logits, dtype=np.float64)
        # In float64 the sigmoid tells apart what float32 would round to 1; this form of it does not overflow.
        return np.exp(-np.logaddexp(0.0, -numbers)) if self._section.activation == "sigmoid" else numbers

    def _load(self, kind: Any, folder: Path) -> Any:
        section = self._section
        placed = section.device == "auto" or "device_map" in section.model_kwargs
        with _quietly():
            encoder = kind(
                str(folder),
                device=None if placed else section.device,
                trust_remote_code=section.trust_remote_code,
                local_files_only=True,
                model_kwargs={"dtype": section.dtype, **section.model_kwargs},
            )
        if section.max_length is not None:
            encoder.max_seq_length = min(section.max_length, encoder.max_seq_length or section.max_length)
        return encoder

    def _unloadable(self, error: Exception) -> str:
        if "trust_remote_code" in str(error):
            return (
                f"model '{self._name}' brings code of its own. Read it, and if you trust it set "
                "rerank_sentence_transformers.trust_remote_code: true."
            )
        return (
            f"model '{self._name}' could not be loaded as a cross-encoder ({type(error).__name__}). Its files or the "
            "settings of rerank_sentence_transformers do not fit."
        )


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the bars that are drawn while weights are read."""
    logging = library("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _valid(text: str) -> str:
    """The text without what is no character, such as half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8")
