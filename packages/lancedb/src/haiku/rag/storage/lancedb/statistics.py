"""How high a text score could be in a database: what makes scores of different databases comparable."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from math import log
from typing import Any

import anyio

from haiku.rag.storage.lancedb.budget import MemoryBudget
from haiku.rag.storage.lancedb.failures import STEP_ERRORS
from haiku.rag.storage.lancedb.fetching import fetched
from haiku.rag.storage.lancedb.keywords import Term
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.text_index import TEXT, tokens
from haiku.rag.storage.lancedb.together import all_together
from haiku.rag.storage.lancedb.vocabulary import Vocabulary

K1 = 1.2
"""The engine's BM25 gives a term at most `K1 + 1` times its inverse document frequency."""
MOST_LOOKUPS = 64
"""A query has so many of its distinct terms looked up; those after them count as the average of these."""
AT_ONCE = 8
MOST_KEPT = 50_000
MOST_ROWS = 20_000
"""The terms of a table with more rows are looked up one by one for good."""
ROWS_A_LOOKUP = 6
"""To count the terms of so many rows takes about as long as to look up one term."""

Key = tuple[str, str]
"""A field, and a term as the query has it."""


class TermStatistics:
    """How many rows hold a term, for one handle on the chunks table, which stands still.

    The engine does not tell a document frequency. The cheapest way to one that it has is a query for the term alone:
    the number of its rows, of which nothing but the score is read. Once so many terms of a small table were looked up
    that counting all of them would have been as dear, they are counted, beside the searches.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._taken = 0
        self._chunks: Any = None
        self._rows = 0
        self._counts: dict[Key, int] = {}
        self._lookups = 0
        self._vocabulary: Vocabulary | None = None
        self._counting: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Stop counting, and forget everything."""
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.wait([self._counting])
        self._forget(None)

    async def attainable(self, tables: Tables, terms: Sequence[Term]) -> float:
        """The score of a passage that said nothing but the query's terms, over and over. At least one term is given.

        Terms that the database lacks count with the highest weight of all: to lack them is evidence too.
        """
        counts = await self._frequencies(tables, terms)
        known = [term for term in terms if _key(term) in counts]
        weights = [term.boost * self._idf(counts[_key(term)]) for term in known]
        return (K1 + 1.0) * sum(weights) * len(terms) / len(known)

    def _idf(self, count: int) -> float:
        rows = max(self._rows, count)
        return log(1.0 + (rows - count + 0.5) / (count + 0.5))

    async def _frequencies(self, tables: Tables, terms: Sequence[Term]) -> dict[Key, int]:
        if self._chunks is not tables.chunks or len(self._counts) > MOST_KEPT:
            self._forget(tables.chunks)
            self._rows = await tables.chunks.count_rows()
        kept = self._counts
        wanted = list(dict.fromkeys(map(_key, terms)))[:MOST_LOOKUPS]
        missing = [key for key in wanted if key not in kept]
        if missing and self._vocabulary is not None:
            kept |= _counted(self._vocabulary, missing, tables.layout.language)
            missing = [key for key in missing if key not in kept]
        if missing:
            turns = anyio.CapacityLimiter(AT_ONCE)
            lookups = [partial(_rows_with, tables.chunks, *key, most=self._rows, turns=turns) for key in missing]
            kept.update(zip(missing, await all_together(lookups), strict=True))
            self._count_beside(tables, len(missing))
        return {key: kept[key] for key in wanted}

    def _count_beside(self, tables: Tables, lookups: int) -> None:
        self._lookups += lookups
        is_worth = self._rows <= MOST_ROWS and self._lookups * ROWS_A_LOOKUP > self._rows
        if is_worth and self._vocabulary is None and (self._counting is None or self._counting.done()):
            self._counting = asyncio.get_running_loop().create_task(self._count(tables))

    async def _count(self, tables: Tables) -> None:
        self._lookups = 0
        with suppress(*STEP_ERRORS):  # searches meet it too, and report it
            texts = await tables.chunks.query().select([TEXT]).to_arrow()
            made = await anyio.to_thread.run_sync(Vocabulary, texts[TEXT], partial(tokens, tables.layout.language))
            if self._chunks is tables.chunks and self._budget.exchange(0, made.nbytes):
                self._vocabulary, self._taken = made, made.nbytes

    def _forget(self, chunks: Any) -> None:
        self._budget.exchange(self._taken, 0)
        self._chunks, self._counts, self._vocabulary = chunks, {}, None
        self._taken = self._lookups = 0


def _counted(vocabulary: Vocabulary, keys: Sequence[tuple[str, str]], language: str | None) -> dict[Key, int]:
    """The counts of words that the index has as one term; identifiers are in a field of their own."""
    forms = {key: tokens(language, key[1]) for key in keys if key[0] == TEXT}
    return {key: vocabulary.count(form[0]) for key, form in forms.items() if len(form) == 1}


def _key(term: Term) -> Key:
    return term.column, term.text


async def _rows_with(chunks: Any, column: str, text: str, *, most: int, turns: anyio.CapacityLimiter) -> int:
    from lancedb.query import MatchQuery

    async with turns:
        alone = MatchQuery(text, column)  # type: ignore[call-arg]  # the engine's classes hide their defaults
        query = chunks.query().nearest_to_text(alone).select(["_score"]).limit(max(most, 1))
        found: int = (await fetched(query, at_most=most)).num_rows
        return found
