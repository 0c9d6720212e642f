"""The table in which a database offers its candidates, and how its legs become one."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

RRF_K = 60
"""The rank constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

CANDIDATE_SCHEMA = pa.schema(
    [
        pa.field("chunk_id", pa.string(), nullable=False),
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("score", pa.float64(), nullable=False),
        pa.field("rank", pa.int32(), nullable=False),
        pa.field("similarity", pa.float64()),
        pa.field("keyword_score", pa.float64()),
        pa.field("keyword_share", pa.float64()),
        pa.field("vector_rank", pa.int32()),
        pa.field("keyword_rank", pa.int32()),
    ]
)
"""One row a candidate, best first.

`score` and `rank` (from 1) are the database's own order: similarity for a vector search, keyword score for full
text, reciprocal rank over both legs for hybrid. `similarity` is the cosine to the query vector (0 for a vector of
zeros), known for every row of a vector or hybrid search; `keyword_score` the engine's text score, known for the rows
of the keyword leg; `keyword_share` how much of the text score that was attainable in the database the row attained,
from 0 to 1, known for the same rows when the query asked for it and the engine can tell; `vector_rank` and
`keyword_rank` (from 1) the row's place in each leg, null where that leg did not find it. A column `vector` (fixed-size
list of float32) follows when the query asked for vectors.
"""


def empty_candidates() -> pa.Table:
    """A table of no candidates."""
    return CANDIDATE_SCHEMA.empty_table()


def candidate_table(
    *,
    document_ids: Mapping[str, str],
    vector_leg: Sequence[str] = (),
    keyword_leg: Sequence[tuple[str, float]] = (),
    similarities: Mapping[str, float] | None = None,
    hybrid: bool = False,
    attainable: float | None = None,
) -> pa.Table:
    """Merge the legs of one database's search into a table of `CANDIDATE_SCHEMA`.

    `vector_leg` holds chunk ids best first, `keyword_leg` chunk ids with their text scores, best first;
    `similarities` the cosine of every id of either leg; `document_ids` each id's document. With `hybrid` the order
    is by reciprocal rank over both legs (k = 60), ties falling to the similarity, then to the id; without it, by the
    one leg that is given. `attainable` is the highest text score that a passage of this database could have for the
    query, None where that is not known. `merged_candidates` does the same for columns.
    """
    vector_rank = {chunk: rank for rank, chunk in enumerate(vector_leg, 1)}
    keyword_rank = {chunk: rank for rank, (chunk, _) in enumerate(keyword_leg, 1)}
    keyword_score = dict(keyword_leg)
    ids = list(dict.fromkeys([*vector_rank, *keyword_rank]))
    cosines = similarities or {}
    return merged_candidates(
        chunk_ids=ids,
        document_ids=[document_ids[chunk] for chunk in ids],
        vector_rank=np.array([vector_rank.get(chunk, 0) for chunk in ids], np.int32),
        keyword_rank=np.array([keyword_rank.get(chunk, 0) for chunk in ids], np.int32),
        keyword_score=np.array([keyword_score.get(chunk, 0.0) for chunk in ids], np.float64),
        similarity=np.array([cosines.get(chunk, np.nan) for chunk in ids], np.float64) if cosines else None,
        hybrid=hybrid,
        attainable=attainable,
    )


def merged_candidates(
    *,
    chunk_ids: Sequence[str],
    document_ids: Sequence[str],
    vector_rank: NDArray[np.int32],
    keyword_rank: NDArray[np.int32],
    keyword_score: NDArray[np.float64],
    similarity: NDArray[np.float64] | None,
    hybrid: bool = False,
    attainable: float | None = None,
) -> pa.Table:
    """`candidate_table` for columns of equal length: one row a chunk of either leg, in any order, none twice.

    `vector_rank` and `keyword_rank` are the places in each leg, from 1, and 0 for a row that the leg did not find;
    `keyword_score` says nothing of rows without a `keyword_rank`; `similarity` is the cosine of every row, None for
    full text.
    """
    in_vector, in_keyword = vector_rank > 0, keyword_rank > 0
    if hybrid:
        score = _reciprocal(vector_rank, in_vector) + _reciprocal(keyword_rank, in_keyword)
        order = _hybrid_order(score, similarity, chunk_ids)
    elif similarity is not None and in_vector.any():
        score, order = similarity, np.argsort(vector_rank, kind="stable")
    else:
        score, order = keyword_score, np.argsort(keyword_rank, kind="stable")
    places, count = order.tolist(), len(order)
    columns = [
        pa.array([chunk_ids[place] for place in places], pa.string()),
        pa.array([document_ids[place] for place in places], pa.string()),
        pa.array(score[order]),
        pa.array(np.arange(1, count + 1, dtype=np.int32)),
        pa.nulls(count, pa.float64()) if similarity is None else pa.array(similarity[order]),
        pa.array(keyword_score[order], mask=~in_keyword[order]),
        _shares(keyword_score[order], in_keyword[order], attainable),
        pa.array(vector_rank[order], mask=~in_vector[order]),
        pa.array(keyword_rank[order], mask=~in_keyword[order]),
    ]
    return pa.Table.from_arrays(columns, schema=CANDIDATE_SCHEMA)


def _shares(keyword_score: NDArray[np.float64], found: NDArray[np.bool_], attainable: float | None) -> pa.Array:
    if attainable is None or attainable <= 0.0:
        return pa.nulls(len(keyword_score), pa.float64())
    return pa.array(np.clip(keyword_score / attainable, 0.0, 1.0), mask=~found)


def _reciprocal(rank: NDArray[np.int32], found: NDArray[np.bool_]) -> NDArray[np.float64]:
    reciprocal: NDArray[np.float64] = found / (RRF_K + rank)
    return reciprocal


def _hybrid_order(
    score: NDArray[np.float64], similarity: NDArray[np.float64] | None, chunk_ids: Sequence[str]
) -> NDArray[np.int64]:
    cosine = np.zeros(len(score)) if similarity is None else np.where(np.isnan(similarity), -np.inf, similarity)
    order: NDArray[np.int64] = np.lexsort((-cosine, -score))
    tied = (np.diff(score[order]) == 0.0) & (cosine[order][1:] == cosine[order][:-1])
    if tied.any():
        alphabetical = np.argsort(np.argsort(np.array(chunk_ids, dtype=object)))
        order = np.lexsort((alphabetical, -cosine, -score))
    return order
