"""What filters may be made of, and what their values mean, for the engines that evaluate them."""

import math
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Literal, get_args

from haiku.rag.contracts.filters import (
    FILTER_FIELDS,
    METADATA_PREFIX,
    MOMENT_FIELDS,
    TEXT_FIELDS,
    And,
    Comparison,
    Filter,
    FilterOperator,
    FilterValue,
    Not,
    Or,
)
from haiku.rag.errors import FilterError

ValueKind = Literal["text", "number", "truth", "moment"]

MAX_DEPTH = 100
MAX_PARTS = 100_000
MAX_PATTERN = 2000
MAX_KEY = 1000
ISO_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ]([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)
ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The operators that take one value and order or equate, in Python."""
NAMES: dict[ValueKind, str] = {"text": "text", "number": "a number", "truth": "true or false", "moment": "a datetime"}


def kind_of(value: object) -> ValueKind | None:
    """What a value compares with: only values of one kind are ever equal. None for what filters do not know."""
    match value:
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case str():
            return "text"
        case datetime():
            return "moment"
    return None


def moment_of(text: str) -> datetime | None:
    """The moment of a text that is an ISO date or moment; midnight without a time, UTC without a zone."""
    if not ISO_MOMENT.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def metadata_value(metadata: dict[str, Any], key: str) -> Any:
    """The value of a filter's key: the key whole, else its parts at the dots, one within the other; None without."""
    if key in metadata:
        return metadata[key]
    found: Any = metadata
    dot = "."
    while dot:
        part, dot, key = key.partition(".")
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    return found


def unknown_field(name: str) -> FilterError:
    """The error for a field that documents do not have; `metadata` itself is none."""
    near = get_close_matches(name.lower(), FILTER_FIELDS, n=1, cutoff=0.6)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    shown = name if len(name) <= 80 else f"{name[:80]}…"
    key = "KEY" if name.lower() + "." == METADATA_PREFIX or not name.strip() else shown
    return FilterError(
        f"the filter names an unknown field '{shown}'.{hint} Known: {', '.join(FILTER_FIELDS)}. "
        f"A key of the metadata is written {METADATA_PREFIX}{key}."
    )


def check_filter(filter: Filter) -> None:
    """`FilterError` for a structure that means nothing: an unknown field, or a value that does not go with it."""
    level: list[object] = [filter]
    count = 0
    for _ in range(MAX_DEPTH):
        level = [part for node in level for part in _checked_parts(node)]
        count += len(level)
        if not level:
            return
        if count > MAX_PARTS:
            raise FilterError(f"the filter has more than {MAX_PARTS:,} parts. Use 'in' for many values of one field.")
    raise FilterError(f"the filter is nested more than {MAX_DEPTH} levels deep. Write it flatter.")


def _checked_parts(node: object) -> tuple[object, ...]:
    match node:
        case Comparison():
            _check_comparison(node)
            return ()
        case Not(part=part):
            return (part,)
        case And(parts=parts) | Or(parts=parts) if isinstance(parts, tuple):
            return parts
        case And() | Or():
            raise FilterError(f"the filter's {type(node).__name__} takes a tuple of filters.")
    raise FilterError(
        f"a filter is made of Comparison, And, Or and Not; this one holds something else ({type(node).__name__})."
    )


def _check_comparison(node: Comparison) -> None:
    kinds = _kinds_of_field(node.field)
    if node.operator not in get_args(FilterOperator):
        known = ", ".join(get_args(FilterOperator))
        raise FilterError(f"the filter compares '{node.field}' by an unknown operator. Known: {known}.")
    if (node.operator == "in") != isinstance(node.value, tuple):
        takes = "a tuple of values" if node.operator == "in" else "one value"
        raise FilterError(f"the filter's operator '{node.operator}' for '{node.field}' takes {takes}.")
    for value in node.value if isinstance(node.value, tuple) else (node.value,):
        _check_value(node, value, kinds)


def _kinds_of_field(field: str) -> tuple[ValueKind, ...]:
    if field in TEXT_FIELDS:
        return ("text",)
    if field in MOMENT_FIELDS:
        return ("moment",)
    if not isinstance(field, str) or not field.startswith(METADATA_PREFIX):
        raise unknown_field(str(field))
    if not field.removeprefix(METADATA_PREFIX).strip():
        raise FilterError(f"the filter names no key after '{METADATA_PREFIX}'. Write {METADATA_PREFIX}KEY.")
    if len(field) > MAX_KEY:
        raise FilterError(f"the filter names a metadata key of more than {MAX_KEY:,} characters. Documents have none.")
    return get_args(ValueKind)


def _check_value(node: Comparison, value: FilterValue, kinds: tuple[ValueKind, ...]) -> None:
    kind = kind_of(value)
    where = f"the filter compares '{node.field}'"
    if kind not in kinds:
        given = NAMES[kind] if kind else type(value).__name__
        raise FilterError(f"{where} with {given}. It takes {' or '.join(NAMES[each] for each in kinds)}.")
    if kind == "number" and not _is_finite(value):
        raise FilterError(f"{where} with a number that is not finite. Give one that is.")
    if isinstance(value, datetime) and value.utcoffset() is None:
        raise FilterError(f"{where} with a datetime without a zone. Give it one, such as tzinfo=UTC.")
    if kind == "truth" and node.operator not in ("=", "!=", "in"):
        raise FilterError(f"{where} with true or false by '{node.operator}'. They have no order: use =, != or in.")
    if node.operator == "like":
        _check_pattern(node, value)


def _check_pattern(node: Comparison, value: FilterValue | tuple[FilterValue, ...]) -> None:
    where = f"the filter's pattern for '{node.field}'"
    if not isinstance(value, str):
        raise FilterError(f"{where} is no text. The operator 'like' takes text with the wildcards % and _.")
    if len(value) > MAX_PATTERN:
        raise FilterError(f"{where} is longer than {MAX_PATTERN:,} characters. Shorten it.")
    if (len(value) - len(value.rstrip("\\"))) % 2:
        raise FilterError(f"{where} ends in a single backslash, which makes nothing plain. Double it.")


def _is_finite(value: object) -> bool:
    """Whether a number is within the range of floating point."""
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:
        return False
