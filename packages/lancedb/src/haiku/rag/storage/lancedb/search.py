"""One database's candidates: what its two legs become."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts import CandidateQuery, merged_candidates
from haiku.rag.errors import EmbeddingError
from haiku.rag.storage.lancedb.keywords import Term, keyword_query, keyword_terms
from haiku.rag.storage.lancedb.legs import Selection, best_first, fetch_leg
from haiku.rag.storage.lancedb.memory import Doubles, VectorMemory, direction_of, true_cosines
from haiku.rag.storage.lancedb.offered import Offered
from haiku.rag.storage.lancedb.pool import Pool
from haiku.rag.storage.lancedb.row_map import RowMap, Rows
from haiku.rag.storage.lancedb.statistics import TermStatistics
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.together import together
from haiku.rag.storage.lancedb.vector_index import tuned

INLINE_VALUES = 4_000_000
"""A product over more values than these runs in a worker thread, beside the keyword leg."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """A query over one state: `direction` or `words` is None where that leg is not wanted or finds nothing.

    `rows` are the live rows of the chunks and `memory` their vectors, None where they are not in memory. `terms` are
    those of the query where its keyword shares are wanted.
    """

    query: CandidateQuery
    tables: Tables
    selection: Selection
    direction: Doubles | None
    words: Any | None
    rows: RowMap | None
    memory: VectorMemory | None
    offered: Offered
    statistics: TermStatistics
    terms: Sequence[Term] = ()

    @property
    def fetches_vectors(self) -> bool:
        """Whether the legs have to fetch their rows' vectors."""
        return self.memory is None and (self.query.with_vectors or self.direction is not None)


@dataclass(frozen=True, kw_only=True)
class WordsLeg:
    """The rows that the words found, best first, their scores, and the highest score there could be, where known."""

    rows: Rows
    scores: Doubles
    attainable: float | None


def query_direction(query: CandidateQuery, dimension: int, database: str) -> Doubles | None:
    """The query's vector at length 1, None where it is zero or not searched by.

    Refused where it is not finite or not of the database's dimension.
    """
    if query.vector is None or query.search_type == "fts":
        return None
    if query.vector.shape != (dimension,):
        raise EmbeddingError(
            f"the query's vector has shape {query.vector.shape}; database '{database}' holds {dimension} dimensions.",
            source=database,
        )
    if not np.isfinite(query.vector).all():
        raise EmbeddingError("the query's vector is not finite. Embed the query again.", source=database)
    return direction_of(query.vector)


def query_terms(query: CandidateQuery, language: str | None) -> tuple[Term, ...]:
    """The terms whose statistics are wanted."""
    return keyword_terms(query.text or "", language=language) if query.with_shares else ()


def query_words(query: CandidateQuery, language: str | None) -> Any | None:
    """The engine's query to search text by, None where there is nothing to look up."""
    return None if query.search_type == "vector" else keyword_query(query.text or "", language=language)


async def candidates(search: Search) -> pa.Table:
    """The table of candidates, each leg bounded by the query's depth."""
    attainable = None
    if search.terms:
        look_up = partial(search.statistics.attainable, search.tables, search.terms)
        (near, named), attainable = await together(partial(_legs, search), look_up)
    else:
        near, named = await _legs(search)
    tables = [leg for leg in (near, named) if isinstance(leg, pa.Table)]
    pool = Pool(search.selection.state, search.rows, search.memory, tables)
    by_vector = near if isinstance(near, np.ndarray) else pool.find(near)
    by_words, scores = pool.find(named), _scores(named)
    near_first = _nearest_first(search, pool, by_vector)[: search.query.depth]
    best_words = best_first(scores, pool.ids(by_words))[: search.query.depth]
    by_score = WordsLeg(rows=by_words[best_words], scores=scores[best_words], attainable=attainable)
    return _merged(search, pool, by_vector[near_first], by_score)


def _merged(search: Search, pool: Pool, by_vector: Rows, words: WordsLeg) -> pa.Table:
    by_words = words.rows
    rows = np.sort(np.concatenate((by_vector, by_words)))
    rows = rows[np.append(True, rows[1:] != rows[:-1])[: len(rows)]]
    keyword_score = np.zeros(len(rows))
    keyword_score[rows.searchsorted(by_words)] = words.scores
    ids = pool.ids(rows).tolist()
    search.offered.note(search.tables.chunks, ids, pool.rows.row_ids[rows].tolist())
    table = merged_candidates(
        chunk_ids=ids,
        document_ids=pool.document_ids(rows),
        vector_rank=_ranks(rows, by_vector),
        keyword_rank=_ranks(rows, by_words),
        keyword_score=keyword_score,
        similarity=_similarity(search, pool, rows),
        hybrid=search.query.search_type == "hybrid",
        attainable=words.attainable,
    )
    return _with_vectors(table, pool, rows, search.tables.dimension) if search.query.with_vectors else table


async def _legs(search: Search) -> tuple[pa.Table | Rows | None, pa.Table | None]:
    memory = search.memory
    if memory is not None and search.direction is not None and memory.vectors.size <= INLINE_VALUES:
        # A product this small is done before a task of its own would have begun.
        return _in_memory(search, memory, search.direction), await _named(search)
    if search.direction is None:
        return None, await _named(search)
    if search.words is None:
        return await _near(search, search.direction), None
    direction = search.direction
    named, near = await together(lambda: _named(search), lambda: _near(search, direction))
    return near, named


async def _near(search: Search, direction: Doubles) -> pa.Table | Rows:
    """At least as many rows as the depth where there are as many, in no order."""
    if search.memory is not None:
        return await anyio.to_thread.run_sync(_in_memory, search, search.memory, direction)
    columns = [*_row_columns(search), "vector", "_distance"]

    def request() -> Any:
        nearest = search.tables.chunks.query().nearest_to(direction.astype(np.float32))
        return tuned(nearest).select(columns).with_row_id()

    return await fetch_leg(
        request,
        search.selection,
        search.rows,
        depth=search.query.depth,
        by_condition=lambda: request().bypass_vector_index(),
    )


def _in_memory(search: Search, memory: VectorMemory, direction: Doubles) -> Rows:
    return memory.nearest(direction, depth=search.query.depth, chosen=search.selection.chosen)


async def _named(search: Search) -> pa.Table | None:
    if search.words is None:
        return None
    columns = [*_row_columns(search), *(["vector"] if search.fetches_vectors else []), "_score"]

    def request() -> Any:
        return search.tables.chunks.query().nearest_to_text(search.words).select(columns).with_row_id()

    return await fetch_leg(request, search.selection, search.rows, depth=search.query.depth)


def _row_columns(search: Search) -> list[str]:
    return ["id", "revision"] if search.rows is None else []


def _scores(table: pa.Table | None) -> Doubles:
    return np.empty(0) if table is None else table["_score"].to_numpy().astype(np.float64)


def _nearest_first(search: Search, pool: Pool, rows: Rows) -> Rows:
    if search.direction is None:
        return rows
    return best_first(true_cosines(pool.vectors(rows), search.direction), pool.ids(rows))


def _similarity(search: Search, pool: Pool, rows: Rows) -> Doubles | None:
    if search.query.vector is None or search.query.search_type == "fts":
        return None
    if search.direction is None:
        return np.zeros(len(rows))
    return true_cosines(pool.vectors(rows), search.direction)


def _ranks(rows: Rows, leg: Rows) -> NDArray[np.int32]:
    ranks = np.zeros(len(rows), np.int32)
    ranks[rows.searchsorted(leg)] = np.arange(1, len(leg) + 1)
    return ranks


def _with_vectors(table: pa.Table, pool: Pool, rows: Rows, dimension: int) -> pa.Table:
    places = dict(zip(pool.ids(rows).tolist(), rows.tolist(), strict=True))
    order = np.array([places[chunk] for chunk in table["chunk_id"].to_pylist()], np.int64)
    vectors = pool.vectors(order) if len(order) else np.empty((0, dimension), np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel(), pa.float32()), dimension)
    return table.append_column(pa.field("vector", column.type), column)
