"""Text as words, and how well words match: BM25 in Lucene's form."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from math import log

K1 = 1.2
B = 0.75
_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """The runs of letters and digits, after NFKC and case folding."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def bm25(passages: Sequence[Sequence[str]], query: Sequence[str]) -> list[float]:
    """A score for each passage, 0 where no word of the query is in it.

    idf · tf / (tf + k1 · (1 - b + b · length / mean length)), with idf = ln(1 + (N - n + 0.5) / (n + 0.5)), k1 = 1.2
    and b = 0.75: what Lucene's BM25Similarity computes since version 8.
    """
    counts = [Counter(passage) for passage in passages]
    mean = sum(map(len, passages)) / max(len(passages), 1)
    scores = [0.0] * len(passages)
    for word in query:
        weight = idf(passages, word)
        for index in (index for index, count in enumerate(counts) if word in count):
            frequency = counts[index][word]
            scores[index] += weight * frequency / (frequency + K1 * (1 - B + B * len(passages[index]) / mean))
    return scores


def idf(passages: Sequence[Sequence[str]], word: str) -> float:
    """The inverse document frequency of a word, and so the highest score that it can give."""
    holding = sum(word in passage for passage in passages)
    return log(1 + (len(passages) - holding + 0.5) / (holding + 0.5))
