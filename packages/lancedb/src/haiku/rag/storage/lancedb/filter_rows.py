"""Filters evaluated over the documents in memory, and what they mean for the rows of other tables."""

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from haiku.rag.contracts.filters import FILTER_FIELDS, And, Comparison, Filter, Not, Or
from haiku.rag.errors import FilterError
from haiku.rag.models.text import clean_text
from haiku.rag.plugins.messages import suggestion
from haiku.rag.storage.lancedb.filter_text import parse_filter
from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.text import one_of

Places = NDArray[np.int64]
"""Places of documents in a state."""


def selected(state: DocumentState, condition: str | Filter) -> Places:
    """The places of the documents that the filter selects, rising. Blocking."""
    structure = parse_filter(condition) if isinstance(condition, str) else condition
    places: Places = pc.indices_nonzero(_mask(state.table, structure)).to_numpy().astype(np.int64)
    return places


def revision_condition(state: DocumentState, places: Places | None) -> str | None:
    """The condition by which a table's live rows belong to the selected documents; None where all are selected.

    Of the two ways to say it the shorter is taken; the negated one lets rows of old revisions through.
    """
    if places is None or len(places) == len(state):
        return None
    chosen = set(places)
    if len(chosen) * 2 <= len(state):
        return one_of("revision", (state.revisions[place] for place in places))
    others = (revision for place, revision in enumerate(state.revisions) if place not in chosen)
    return one_of("revision", others, negated=True)


def _mask(table: pa.Table, node: Filter) -> pa.ChunkedArray:
    match node:
        case Comparison():
            return pc.fill_null(_compare(_column(table, node.field), node), False)
        case Not(part):
            return pc.invert(_mask(table, part))
        case And(parts):
            return reduce(pc.and_, (_mask(table, part) for part in parts), _constant(table, value=True))
        case Or(parts):
            return reduce(pc.or_, (_mask(table, part) for part in parts), _constant(table, value=False))


def _constant(table: pa.Table, *, value: bool) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([value] * table.num_rows, pa.bool_())])


def _column(table: pa.Table, field: str) -> pa.ChunkedArray:
    if field not in FILTER_FIELDS:
        raise FilterError(f"the filter names an unknown field '{field}'.{suggestion(field, FILTER_FIELDS)}")
    return table[field]


def _compare(column: pa.ChunkedArray, node: Comparison) -> pa.ChunkedArray:
    match node.operator, node.value:
        case "=", str(value):
            return pc.equal(column, clean_text(value))
        case "!=", str(value):
            return pc.not_equal(column, clean_text(value))
        case "like", str(value):
            return pc.match_like(column, clean_text(value))
        case "in", tuple(values):
            # A null is in no list: is_in would otherwise look for it among the values.
            return pc.is_in(column, value_set=pa.array([clean_text(str(value)) for value in values], pa.string()))
    raise FilterError(f"the filter's operator '{node.operator}' does not go with the value that it has.")
