"""Filters as SQL over `documents d`."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from haiku.rag.contracts import And, Comparison, Filter, Not, Or, check_filter, kind_of, metadata_value, moment_of
from haiku.rag.errors import FilterError

Condition = tuple[str, list[Any]]

TYPES = {"text": ("text",), "number": ("integer", "real"), "truth": ("true", "false"), "moment": ("text",)}
NOTHINGS = (None, None)
"""Ends a list, which so has more values than one and none that compares with anything."""
HELD = "json_each(metadata_of(d.body, ?))"


def where(filter: str | Filter | None) -> Condition:
    """A condition and its values."""
    if filter is None:
        return "1", []
    if isinstance(filter, str):
        raise FilterError("acme-sql takes filters as structure, not as text.")
    check_filter(filter)
    return _condition(filter)


def add_functions(connection: sqlite3.Connection) -> None:
    """What the conditions call: the moment of a text, and a document's values under a key as a JSON list."""
    connection.create_function("moment", 1, _stamp_of, deterministic=True)
    connection.create_function("metadata_of", 2, _metadata_of, deterministic=True)


def _metadata_of(body: str, key: str) -> str:
    value = metadata_value(json.loads(body)["metadata"], key)
    return json.dumps([*value, *NOTHINGS] if isinstance(value, list) else [value])


def _stamp_of(value: object) -> float | None:
    moment = moment_of(value) if isinstance(value, str) else None
    return None if moment is None else moment.timestamp()


def _condition(filter: Filter) -> Condition:
    match filter:
        case And(parts=parts):
            return _joined(" AND ", "1", parts)
        case Or(parts=parts):
            return _joined(" OR ", "0", parts)
        case Not(part=part):
            condition, values = _condition(part)
            return f"NOT {condition}", values
    if filter.field.startswith("metadata."):
        return _in_metadata(filter, filter.field.removeprefix("metadata."))
    if filter.field.endswith("_at"):
        return _compared(f"moment(json_extract(d.body, '$.{filter.field}'))", filter)
    return _compared(f"d.{filter.field}", filter)


def _joined(word: str, nothing: str, parts: tuple[Filter, ...]) -> Condition:
    conditions = [_condition(part) for part in parts]
    text = word.join([condition for condition, _ in conditions] or [nothing])
    return f"({text})", [value for _, values in conditions for value in values]


def _in_metadata(filter: Comparison, key: str) -> Condition:
    if filter.operator == "!=":
        equal, values = _in_metadata(Comparison(filter.field, "=", filter.value), key)
        is_like = f"(SELECT count(*) > 1 OR max({_is_of_kind(filter.value)}) FROM {HELD})"
        return f"({is_like} AND NOT {equal})", [key, *values]
    wanted = filter.value if isinstance(filter.value, tuple) else (filter.value,)
    parts = []
    for value in wanted:
        held = "moment(value)" if kind_of(value) == "moment" else "value"
        operator = "=" if filter.operator == "in" else filter.operator
        condition, values = _compared(held, Comparison(filter.field, operator, value))
        parts.append((f"({_is_of_kind(value)} AND {condition})", values))
    any_of = " OR ".join([condition for condition, _ in parts] or ["0"])
    return f"EXISTS (SELECT 1 FROM {HELD} WHERE {any_of})", [key, *(each for _, values in parts for each in values)]


def _is_of_kind(value: Any) -> str:
    kind = kind_of(value) or "text"
    names = ", ".join(f"'{name}'" for name in TYPES[kind])
    return f"(type IN ({names}){' AND moment(value) IS NOT NULL' if kind == 'moment' else ''})"


def _compared(held: str, filter: Comparison) -> Condition:
    if filter.operator == "in":
        values: Sequence[Any] = filter.value  # type: ignore[assignment]
        return f"coalesce({held} IN (SELECT value FROM json_each(?)), 0)", [json.dumps([_bound(v) for v in values])]
    escape = " ESCAPE '\\'" if filter.operator == "like" else ""
    return f"coalesce({held} {filter.operator} ?{escape}, 0)", [_bound(filter.value)]


def _bound(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return float(value) if isinstance(value, int) and abs(value) >= 2**63 else value
