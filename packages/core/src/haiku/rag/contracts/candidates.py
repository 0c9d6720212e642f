"""The table in which a database offers its candidates, and how its legs become one."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

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
        pa.field("vector_rank", pa.int32()),
        pa.field("keyword_rank", pa.int32()),
    ]
)
"""One row a candidate, best first.

`score` and `rank` (from 1) are the database's own order: similarity for a vector search, keyword score for full
text, reciprocal rank over both legs for hybrid. `similarity` is the cosine to the query vector (0 for a vector of
zeros), known for every row of a vector or hybrid search; `keyword_score` the engine's text score, known for the rows
of the keyword leg; `vector_rank` and `keyword_rank` (from 1) the row's place in each leg, null where that
leg did not find it. A column `vector` (fixed-size list of float32) follows when the query asked for vectors.
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
) -> pa.Table:
    """Merge the legs of one database's search into a table of `CANDIDATE_SCHEMA`.

    `vector_leg` holds chunk ids best first, `keyword_leg` chunk ids with their text scores, best first;
    `similarities` the cosine of every id of either leg; `document_ids` each id's document. With `hybrid` the order
    is by reciprocal rank over both legs (k = 60), ties falling to the similarity, then to the id; without it, by the
    one leg that is given.
    """
    vector_rank = {chunk: rank for rank, chunk in enumerate(vector_leg, 1)}
    keyword_rank = {chunk: rank for rank, (chunk, _) in enumerate(keyword_leg, 1)}
    keyword_score = dict(keyword_leg)
    cosine = similarities or {}
    ids = list(dict.fromkeys([*vector_rank, *keyword_rank]))
    if hybrid:
        own = {chunk: _reciprocal(vector_rank.get(chunk)) + _reciprocal(keyword_rank.get(chunk)) for chunk in ids}
        ids.sort(key=lambda chunk: (-own[chunk], -cosine.get(chunk, -np.inf), chunk))
    else:
        own = {chunk: cosine[chunk] for chunk in vector_leg} or keyword_score
    return pa.table(
        {
            "chunk_id": ids,
            "document_id": [document_ids[chunk] for chunk in ids],
            "score": [own[chunk] for chunk in ids],
            "rank": list(range(1, len(ids) + 1)),
            "similarity": [cosine.get(chunk) for chunk in ids],
            "keyword_score": [keyword_score.get(chunk) for chunk in ids],
            "vector_rank": [vector_rank.get(chunk) for chunk in ids],
            "keyword_rank": [keyword_rank.get(chunk) for chunk in ids],
        },
        schema=CANDIDATE_SCHEMA,
    )


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1.0 / (RRF_K + rank)
