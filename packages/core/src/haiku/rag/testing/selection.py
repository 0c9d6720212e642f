"""Deciding a structured filter in Python, document by document: what engines are compared with."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, assert_never

from haiku.rag.contracts.filter_values import ORDERS, check_filter, kind_of, metadata_value, moment_of
from haiku.rag.contracts.filters import METADATA_PREFIX, And, Comparison, Filter, FilterValue, Not, Or
from haiku.rag.models import Document


def selector(filter: Filter) -> Callable[[Document], bool]:
    """Whether the filter selects a document, as a function of it; `FilterError` for a filter that means nothing."""
    check_filter(filter)
    return partial(selects, filter)


def selects(filter: Filter, document: Document) -> bool:
    """Whether a filter that means something selects a document."""
    match filter:
        case And(parts=parts):
            return all(selects(part, document) for part in parts)
        case Or(parts=parts):
            return any(selects(part, document) for part in parts)
        case Not(part=part):
            return not selects(part, document)
        case Comparison():
            return _holds(filter, _actual(document, filter.field))
        case _:  # pragma: no cover - the union has no other member
            assert_never(filter)


def _actual(document: Document, field: str) -> Any:
    if field.startswith(METADATA_PREFIX):
        return metadata_value(document.metadata, field.removeprefix(METADATA_PREFIX))
    return getattr(document, field)


def _holds(comparison: Comparison, actual: Any) -> bool:
    if not isinstance(actual, list):
        return _holds_for_one(comparison, actual)
    if comparison.operator == "!=":
        return not _holds(replace(comparison, operator="="), actual)
    return any(_holds_for_one(comparison, value) for value in actual)


def _holds_for_one(comparison: Comparison, actual: Any) -> bool:
    value = comparison.value
    if isinstance(value, tuple):
        return any(_compares("=", actual, each) for each in value)
    if comparison.operator == "like":
        return isinstance(actual, str) and _like(str(value)).fullmatch(actual) is not None
    return _compares(comparison.operator, actual, value)


def _compares(order: str, actual: Any, value: FilterValue) -> bool:
    kind = kind_of(value)
    if kind == "moment" and isinstance(actual, str):
        actual = moment_of(actual)
    # What is not a number, though of its type, equals and precedes nothing, not even itself.
    return kind_of(actual) == kind and actual == actual and ORDERS[order](actual, value)  # noqa: PLR0124


def _like(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression; letters match in their own case only."""
    first, *others = _runs(pattern)
    if not others:
        return re.compile(first, re.DOTALL)
    # Each run is taken where it first occurs: that loses no match, and no pattern takes long.
    middle = "".join(f"(?>.*?{run})" for run in others[:-1])
    return re.compile(f"{first}{middle}.*{others[-1]}", re.DOTALL)


def _runs(pattern: str) -> list[str]:
    """What stands before, between and after the `%`, as regular expressions."""
    runs = [""]
    for token in re.finditer(r"\\(?P<plain>.)|(?P<any>.)", pattern, re.DOTALL):
        if token["any"] == "%":
            runs.append("")
        else:
            runs[-1] += "." if token["any"] == "_" else re.escape(token["plain"] or token["any"])
    return runs
