"""Columns of values compared with one value, or looked up in a list of them."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from haiku.rag.contracts.filter_values import ORDERS
from haiku.rag.contracts.filters import FilterOperator

Mask = NDArray[np.bool_]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
EXACT = 2**53
"""Up to here every whole number is one of floating point too."""

WILDCARDS = {"%": ".*", "_": "."}
TEXT_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def microseconds(moment: datetime) -> int:
    """Since 1970."""
    return (moment - EPOCH) // MICROSECOND


def texts_that(texts: Any, order: FilterOperator, value: str | Sequence[str]) -> Mask:
    """Which texts of an Arrow column do; a null does not."""
    if order == "in":
        # A null is in no list: is_in would otherwise look for it among the values.
        found = pc.is_in(texts, value_set=pa.array(value, pa.string()))
    elif order == "like":
        found = pc.match_substring_regex(texts, _expression(str(value)))
    else:
        found = TEXT_ORDERS[order](texts, value)
    return np.asarray(pc.fill_null(found, False))


def numbers_that(numbers: NDArray[Any], order: FilterOperator, value: Any) -> Mask:
    """Which numbers do: whole ones as they are, however large."""
    values = value if order == "in" else [value]
    if numbers.dtype == np.float64 and not all(map(is_exact, values)):
        numbers = numbers.astype(object)
    if order == "in":
        wanted = set(values)
        if numbers.dtype == object:
            return np.fromiter((number in wanted for number in numbers), bool, len(numbers))
        return np.isin(numbers, np.array(list(wanted), numbers.dtype))
    return np.asarray(ORDERS[order](numbers, value), bool)


def is_exact(number: float) -> bool:
    """Whether the number is one of floating point."""
    return not isinstance(number, int) or abs(number) <= EXACT


def _expression(pattern: str) -> str:
    """A LIKE pattern as a regular expression of Arrow's, whose own LIKE goes astray at backslashes."""
    parts: list[str] = []
    is_plain = False
    for character in pattern:
        if character == "\\" and not is_plain:
            is_plain = True
            continue
        plain = character if character.isalnum() else f"\\x{{{ord(character):x}}}"
        parts.append(plain if is_plain else WILDCARDS.get(character, plain))
        is_plain = False
    return f"^(?s:{''.join(parts)})$"
