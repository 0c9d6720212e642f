"""One database's candidates: what its two legs become."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from haiku.rag.contracts import CandidateQuery, candidate_table
from haiku.rag.errors import EmbeddingError
from haiku.rag.storage.lancedb.filter_rows import Places, revision_condition
from haiku.rag.storage.lancedb.legs import Leg, fetch_leg
from haiku.rag.storage.lancedb.schema import METRIC
from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.text import has_words, searchable
from haiku.rag.storage.lancedb.vectors import Doubles, Floats, VectorMemory, all_cosines, ratios


@dataclass(frozen=True, kw_only=True)
class Search:
    """A query over one state: `vector` is None and `words` empty where that leg is not wanted or finds nothing.

    `places` are the documents selected, None for all; `memory` the state's vectors, None where they do not fit.
    """

    query: CandidateQuery
    chunks: Any
    state: DocumentState
    places: Places | None
    dimension: int
    vector: Floats | None
    words: str
    memory: VectorMemory | None

    @property
    def condition(self) -> str | None:
        """What restricts the chunks table before a leg chooses."""
        return revision_condition(self.state, self.places)


def query_vector(query: CandidateQuery, dimension: int, database: str) -> Floats | None:
    """The vector to search by; refused where it is not finite or not of the database's dimension."""
    if query.vector is None or query.search_type == "fts":
        return None
    if query.vector.shape != (dimension,):
        raise EmbeddingError(
            f"the query's vector has shape {query.vector.shape}; database '{database}' holds {dimension} dimensions.",
            source=database,
        )
    if not np.isfinite(query.vector).all():
        raise EmbeddingError("the query's vector is not finite. Embed the query again.", source=database)
    return query.vector.astype(np.float32, copy=False)


def query_words(query: CandidateQuery) -> str:
    """The text to search by, empty where there is nothing to look up."""
    words = "" if query.search_type == "vector" else searchable(query.text or "")
    return words if has_words(words) else ""


async def candidates(search: Search) -> pa.Table:
    """The table of candidates, each leg bounded by the query's depth."""
    # The keyword leg first: the engine is then at work on it while the products are computed here.
    keyword_leg, (vector_leg, cosines) = await asyncio.gather(_keyword_leg(search), _vector_leg(search))
    legs = (vector_leg, keyword_leg)
    table = candidate_table(
        document_ids={
            chunk: document for leg in legs for chunk, document in zip(leg.ids, leg.document_ids, strict=True)
        },
        vector_leg=vector_leg.ids,
        keyword_leg=list(zip(keyword_leg.ids, keyword_leg.scores, strict=True)),
        similarities=_similarities(search, cosines, vector_leg, keyword_leg),
        hybrid=search.query.search_type == "hybrid",
    )
    return _with_vectors(table, legs, search) if search.query.with_vectors else table


def row_cosines(vectors: Floats, query: Floats) -> Doubles:
    """The cosine of each row to the query, and 0 where either is zero."""
    rows, other = vectors.astype(np.float64), query.astype(np.float64)
    norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(other)
    return ratios(rows @ other, norms)


async def _vector_leg(search: Search) -> tuple[Leg, Doubles | None]:
    vector, depth = search.vector, search.query.depth
    if vector is None or not vector.any():
        return Leg(), None
    if search.memory is not None:
        cosines = await all_cosines(search.memory, vector)
        return search.memory.leg(cosines, depth=depth, places=search.places), cosines
    columns = ["id", "revision", "_distance", *(["vector"] if search.query.with_vectors else [])]

    def request() -> Any:
        return search.chunks.query().nearest_to(vector).distance_type(METRIC).select(columns)

    leg = await fetch_leg(request, search.state, score="_distance", depth=depth, condition=search.condition)
    return leg, None


async def _keyword_leg(search: Search) -> Leg:
    if not search.words:
        return Leg()
    from lancedb.query import MatchQuery

    wants_vectors = search.memory is None and (search.query.with_vectors or search.vector is not None)
    columns = ["id", "revision", "_score", *(["vector"] if wants_vectors else [])]
    match = MatchQuery(search.words, "text")  # type: ignore[call-arg]  # its defaults are hidden from type checkers

    def request() -> Any:
        return search.chunks.query().nearest_to_text(match).select(columns)

    depth = search.query.depth
    return await fetch_leg(request, search.state, score="_score", depth=depth, condition=search.condition)


def _similarities(
    search: Search, cosines: Doubles | None, vector_leg: Leg, keyword_leg: Leg
) -> dict[str, float] | None:
    if search.vector is None:
        return None
    known = dict(zip(vector_leg.ids, vector_leg.scores, strict=True))
    if cosines is not None and search.memory is not None:
        values = cosines[search.memory.rows_of(keyword_leg.ids)]
    elif keyword_leg.vectors is not None:
        values = row_cosines(keyword_leg.vectors, search.vector)
    else:
        values = np.zeros(len(keyword_leg.ids))
    return {**dict(zip(keyword_leg.ids, values.tolist(), strict=True)), **known}


def _with_vectors(table: pa.Table, legs: Sequence[Leg], search: Search) -> pa.Table:
    chunk_ids = table["chunk_id"].to_pylist()
    if search.memory is not None:
        rows = search.memory.vectors[search.memory.rows_of(chunk_ids)]
    else:
        found = [(leg.ids, leg.vectors) for leg in legs if leg.vectors is not None]
        known = {chunk: row for ids, vectors in found for chunk, row in zip(ids, vectors, strict=True)}
        rows = np.array([known[chunk] for chunk in chunk_ids], np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel(), pa.float32()), search.dimension)
    return table.append_column(pa.field("vector", column.type), column)
