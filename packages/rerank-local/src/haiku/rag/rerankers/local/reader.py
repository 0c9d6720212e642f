"""Queries and passages as late interaction wants them. Everything here blocks."""

from collections.abc import Iterator, Mapping

import numpy as np

from haiku.rag.contracts.embedder import Vectors
from haiku.rag.embedders.local.token_vectors import TokenReader, TokenVectors
from haiku.rag.rerankers.local.compact import CompactPassage, compact
from haiku.rag.rerankers.local.scoring import Question
from haiku.rag.rerankers.local.stop_words import PUNCTUATION, STOP_WORDS

QUERY_TOKENS = 256


class Reader:
    """The model, and the ids of the tokens that say nothing. Loads the model when it is made."""

    def __init__(self, *, max_tokens: int) -> None:
        self._reader = TokenReader(max_tokens=max_tokens)
        self._query_reader = TokenReader(max_tokens=QUERY_TOKENS)
        self._ignored = np.array(self._reader.ids(STOP_WORDS + PUNCTUATION))

    def question(self, query: str) -> Question:
        """The query, read: its first 256 tokens."""
        ((_, tokens),) = [read for done in self._query_reader.read([query]) for read in done]
        return Question(self._telling(tokens), tokens.pooled)

    def passages(self, texts: Mapping[bytes, str]) -> Iterator[dict[bytes, CompactPassage]]:
        """The texts by key. Each step runs the model on one batch and gives what it has completed."""
        keys = list(texts)
        for done in self._reader.read(list(texts.values())):
            yield {keys[number]: compact(self._telling(tokens), tokens.pooled) for number, tokens in done}

    def _telling(self, tokens: TokenVectors) -> Vectors:
        """The vectors of the tokens that are neither punctuation nor stop words; of all, if none is left."""
        told = ~np.isin(tokens.ids, self._ignored)
        return tokens.vectors[told] if told.any() else tokens.vectors
