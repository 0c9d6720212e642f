"""Exact search over documents in memory."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.candidates import candidate_table
from haiku.rag.contracts.storage import CandidateQuery
from haiku.rag.models import Document
from haiku.rag.testing.memory_server import StoredDocument
from haiku.rag.testing.words import bm25, idf, words


def candidates(
    documents: Sequence[StoredDocument], query: CandidateQuery, is_selected: Callable[[Document], bool]
) -> pa.Table:
    """The candidates of a query among the selected documents. Word statistics are those of all documents."""
    chosen = [is_selected(stored.row) for stored in documents for _ in stored.parts.chunks]
    ids = [str(chunk.id) for stored in documents for chunk in stored.parts.chunks]
    owners = {str(chunk.id): stored.row.id for stored in documents for chunk in stored.parts.chunks}
    vectors = _vectors(documents, query)
    similarities = dict(zip(ids, _cosines(vectors, query), strict=True)) if query.vector is not None else {}
    hybrid = query.search_type == "hybrid"
    table = candidate_table(
        document_ids=owners,
        vector_leg=_best(similarities, ids, chosen, query.depth) if query.search_type != "fts" else (),
        keyword_leg=_keyword_leg(documents, ids, chosen, query) if query.search_type != "vector" else (),
        similarities=similarities,
        hybrid=hybrid,
        attainable=_attainable(documents, query),
    )
    return _with_vectors(table, dict(zip(ids, vectors, strict=True)), query) if query.with_vectors else table


def _vectors(documents: Sequence[StoredDocument], query: CandidateQuery) -> NDArray[np.float32]:
    stored = [document.parts.vectors for document in documents if document.parts.chunks]
    kept = [np.asarray(vectors, dtype=np.float32) for vectors in stored]
    dimension = 0 if query.vector is None else len(query.vector)
    return np.concatenate(kept) if kept else np.zeros((0, dimension), dtype=np.float32)


def _cosines(vectors: NDArray[np.float32], query: CandidateQuery) -> list[float]:
    """The cosines in double precision; a vector of length zero has no angle and counts as 0."""
    wanted = np.asarray(query.vector, dtype=np.float64)
    rows = vectors.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(wanted)
    products = rows @ wanted
    return [float(value) for value in np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)]


def _best(scores: dict[str, float], ids: Sequence[str], chosen: Sequence[bool], depth: int) -> list[str]:
    selected = [chunk for chunk, is_chosen in zip(ids, chosen, strict=True) if is_chosen]
    return sorted(selected, key=lambda chunk: (-scores[chunk], chunk))[:depth]


def _keyword_leg(
    documents: Sequence[StoredDocument], ids: Sequence[str], chosen: Sequence[bool], query: CandidateQuery
) -> list[tuple[str, float]]:
    passages = [tokens for stored in documents for tokens in stored.words]
    scores = dict(zip(ids, bm25(passages, words(query.text or "")), strict=True))
    found = [is_chosen and scores[chunk] > 0 for chunk, is_chosen in zip(ids, chosen, strict=True)]
    return [(chunk, scores[chunk]) for chunk in _best(scores, ids, found, query.depth)]


def _attainable(documents: Sequence[StoredDocument], query: CandidateQuery) -> float | None:
    if not query.with_shares:
        return None
    passages = [tokens for stored in documents for tokens in stored.words]
    return sum(idf(passages, word) for word in words(query.text or ""))


def _with_vectors(table: pa.Table, vectors: dict[str, NDArray[np.float32]], query: CandidateQuery) -> pa.Table:
    rows = [vectors[chunk] for chunk in table["chunk_id"].to_pylist()]
    dimension = len(next(iter(vectors.values()), query.vector if query.vector is not None else []))
    column = pa.array([row.tolist() for row in rows], type=pa.list_(pa.float32(), dimension))
    return table.append_column("vector", column)
