"""Deciding a structured filter in Python."""

import re
from collections.abc import Mapping
from typing import assert_never

from haiku.rag.contracts.filters import FILTER_FIELDS, And, Comparison, Filter, Not, Or
from haiku.rag.errors import FilterError


def selects(filter: Filter, fields: Mapping[str, str | None]) -> bool:
    """Whether the filter selects a document with these fields."""
    match filter:
        case And(parts=parts):
            return all(selects(part, fields) for part in parts)
        case Or(parts=parts):
            return any(selects(part, fields) for part in parts)
        case Not(part=part):
            return not selects(part, fields)
        case Comparison():
            return _compares(filter, fields)
        case _:  # pragma: no cover - the union has no other member
            assert_never(filter)


def _compares(comparison: Comparison, fields: Mapping[str, str | None]) -> bool:
    if comparison.field not in FILTER_FIELDS:
        raise FilterError(f"there is no field '{comparison.field}' to filter by. Known: {', '.join(FILTER_FIELDS)}.")
    actual = fields[comparison.field]
    if actual is None:
        return False
    value = comparison.value
    if isinstance(value, tuple):
        return actual in value
    if comparison.operator == "like":
        return _like(value).fullmatch(actual) is not None
    return (actual == value) == (comparison.operator == "=")


def _like(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression; letters match in their own case only."""
    parts = [_plain_or_wild(match) for match in re.finditer(r"\\(?P<plain>.)|(?P<any>[\s\S])", pattern, re.DOTALL)]
    return re.compile("".join(parts), re.DOTALL)


def _plain_or_wild(match: re.Match[str]) -> str:
    if match["plain"] is not None:
        return re.escape(match["plain"])
    return {"%": ".*", "_": "."}.get(match["any"]) or re.escape(match["any"])
