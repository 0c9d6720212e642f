"""One statement that fetches the candidates of any number of databases in a file."""

import json
import re
import sqlite3
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from acme_sqlstore.selection import where
from haiku.rag.contracts import CandidateQuery, candidate_table

STATEMENT = """
    WITH hits AS MATERIALIZED ({hits})
    SELECT d.home, c.id, d.id, c.vector, hits.score
    FROM documents d JOIN chunks c ON c.document = d.key LEFT JOIN hits ON hits.key = c.key
    WHERE d.home IN (SELECT value FROM json_each(?)) AND {condition}
"""
HITS = "SELECT rowid AS key, -bm25(words) AS score FROM words WHERE words MATCH ?"
NO_HITS = "SELECT NULL AS key, NULL AS score WHERE 0"
WORD = re.compile(r"[^\W_]+")


def plain(text: str) -> str:
    """The form in which texts and queries meet."""
    return unicodedata.normalize("NFKC", text).casefold()


def search(connection: sqlite3.Connection, homes: Sequence[str], query: CandidateQuery) -> list[pa.Table]:
    """A table of candidates a database."""
    condition, values = where(query.filter)
    match = " OR ".join(f'"{word}"' for word in sorted(set(WORD.findall(plain(query.text or "")))))
    statement = STATEMENT.format(hits=HITS if match else NO_HITS, condition=condition)
    found: dict[str, list[Any]] = defaultdict(list)
    for home, *row in connection.execute(statement, [*([match] if match else []), json.dumps(homes), *values]):
        found[home].append(row)
    return [_table(found[home], query) for home in homes]


def _table(rows: Sequence[Any], query: CandidateQuery) -> pa.Table:
    vectors = {chunk: np.frombuffer(vector, dtype=np.float32) for chunk, _, vector, _ in rows}
    cosines = (
        {chunk: _cosine(vector, query.vector) for chunk, vector in vectors.items()} if query.vector is not None else {}
    )
    texts = {chunk: score for chunk, _, _, score in rows if score is not None}
    table = candidate_table(
        document_ids={chunk: document for chunk, document, _, _ in rows},
        vector_leg=_best(cosines, query.depth),
        keyword_leg=[(chunk, texts[chunk]) for chunk in _best(texts, query.depth)] if query.text is not None else [],
        similarities=cosines,
        hybrid=query.search_type == "hybrid",
    )
    if not query.with_vectors:
        return table
    chosen = [vectors[chunk].tolist() for chunk in table["chunk_id"].to_pylist()]
    size = len(next(iter(vectors.values()), ()))
    return table.append_column("vector", pa.array(chosen, type=pa.list_(pa.float32(), size)))


def _best(scores: dict[str, float], depth: int) -> list[str]:
    return sorted(scores, key=lambda chunk: (-scores[chunk], chunk))[:depth]


def _cosine(vector: Any, wanted: Any) -> float:
    left, right = vector.astype(np.float64), np.asarray(wanted, dtype=np.float64)
    length = np.linalg.norm(left) * np.linalg.norm(right)
    return float(left @ right / length) if length else 0.0
