"""Made-up pools of candidates, as several databases would offer them."""

from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from haiku.rag.contracts.candidates import candidate_table
from haiku.rag.contracts.fusion import FusionContext
from haiku.rag.federation.rank import pool_candidates
from haiku.rag.models import SearchType

_COSINES = st.one_of(st.floats(-1, 1, width=32), st.sampled_from([0.0, 0.5, 0.5, 1.0, -1.0]))
_TEXT_SCORES = st.one_of(st.floats(0.0009765625, 64, width=32), st.sampled_from([1.0, 2.0]))
_ATTAINABLE = st.one_of(st.none(), st.floats(0.5, 128, width=32))
_HOLES = st.sampled_from([None, float("nan"), 0.25])


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The candidates of each database, by the name at the same place."""

    search_type: SearchType
    tables: tuple[pa.Table, ...]
    names: tuple[str, ...]


@st.composite
def pools(draw: st.DrawFn, *, holes: bool = False, least: int = 0) -> Pool:
    """Up to three databases with up to six candidates each; with `holes`, scores are missing, NaN or equal."""
    search_type: SearchType = draw(st.sampled_from(["hybrid", "vector", "fts"]))
    count = draw(st.integers(1, 3))
    tables = [_table(draw, search_type, draw(st.integers(least, 6))) for _ in range(count)]
    if holes:
        tables = [_with_holes(draw, table) for table in tables]
    return Pool(search_type=search_type, tables=tuple(tables), names=tuple("abc"[:count]))


def _table(draw: st.DrawFn, search_type: SearchType, rows: int) -> pa.Table:
    ids = [f"chunk-{number}" for number in range(rows)]
    cosines = {chunk: draw(_COSINES) for chunk in ids} if search_type != "fts" else {}
    texts = {chunk: draw(_TEXT_SCORES) for chunk in ids} if search_type != "vector" else {}
    in_text = [chunk for chunk in texts if search_type == "fts" or draw(st.booleans())]
    return candidate_table(
        document_ids={chunk: f"document of {chunk}" for chunk in ids},
        vector_leg=sorted(cosines, key=lambda chunk: -cosines[chunk]),
        keyword_leg=[(chunk, texts[chunk]) for chunk in sorted(in_text, key=lambda chunk: -texts[chunk])],
        similarities=cosines,
        hybrid=search_type == "hybrid",
        attainable=draw(_ATTAINABLE),
    )


def _with_holes(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    for column in ("similarity", "keyword_score", "keyword_share"):
        values = [draw(_HOLES) for _ in range(table.num_rows)]
        index = table.schema.get_field_index(column)
        table = table.set_column(index, table.schema.field(column), pa.array(values, type=pa.float64()))
    return table


def pool_table(pool: Pool) -> pa.Table:
    """The pool as a fusion is given it."""
    return pool_candidates(pool.tables)


def context_for(pool: Pool, *, readable: float = 1.0) -> FusionContext:
    """The context of a search that found the pool."""
    return FusionContext(
        sources=pool.names, search_type=pool.search_type, limit=5, query="stone bridge", readable=readable
    )
