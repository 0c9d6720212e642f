"""Filters evaluated over the documents in memory."""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.filter_values import check_filter
from haiku.rag.contracts.filters import METADATA_PREFIX, MOMENT_FIELDS, And, Comparison, Filter, FilterValue, Not, Or
from haiku.rag.models.text import clean_text
from haiku.rag.storage.lancedb.filter_columns import Mask, microseconds, numbers_that, texts_that
from haiku.rag.storage.lancedb.filter_text import parse_filter
from haiku.rag.storage.lancedb.state import DocumentState

Places = NDArray[np.int64]
"""Places of documents in a state."""


def selected(state: DocumentState, condition: str | Filter) -> Places:
    """The places of the documents that the filter selects, rising. Blocking."""
    if isinstance(condition, str):
        structure = parse_filter(condition)
    else:
        structure = condition
        check_filter(structure)
    return np.flatnonzero(_mask(state, structure)).astype(np.int64, copy=False)


def _mask(state: DocumentState, node: Filter) -> Mask:
    match node:
        case Comparison(field=field) if field in MOMENT_FIELDS:
            moments = np.asarray(state.table[field].cast(pa.int64()))
            return numbers_that(moments, node.operator, _each(node.value, microseconds))
        case Comparison(field=field) if field.startswith(METADATA_PREFIX):
            column = state.metadata.column(_json_text(field.removeprefix(METADATA_PREFIX)))
            return column.mask(node.operator, _each(node.value, _json_text))
        case Comparison():
            return texts_that(state.table[node.field], node.operator, _each(node.value, clean_text))
        case Not(part):
            return ~_mask(state, part)
        case And(parts):
            return reduce(np.logical_and, (_mask(state, part) for part in parts), np.ones(len(state), bool))
        case Or(parts):
            return reduce(np.logical_or, (_mask(state, part) for part in _folded(parts)), np.zeros(len(state), bool))


def _folded(parts: Sequence[Filter]) -> Iterator[Filter]:
    """The parts of an Or, what they want a field to equal put into one list: thousands of them are as fast as one."""
    wanted: dict[str, list[FilterValue]] = {}
    for part in parts:
        if isinstance(part, Comparison) and part.operator == "=" and not isinstance(part.value, tuple):
            wanted.setdefault(part.field, []).append(part.value)
        else:
            yield part
    yield from (Comparison(field, "in", tuple(values)) for field, values in wanted.items())


def _each(value: Any, change: Any) -> Any:
    """The value, or each of a tuple's values, changed."""
    return tuple(map(change, value)) if isinstance(value, tuple) else change(value)


def _json_text(value: Any) -> Any:
    """A text as it is stored within JSON, where alone NUL characters are kept; any other value as it is."""
    return "\0".join(map(clean_text, value.split("\0"))) if isinstance(value, str) else value
