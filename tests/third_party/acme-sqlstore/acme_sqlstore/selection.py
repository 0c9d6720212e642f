"""Filters as SQL over `documents d`."""

import json

from haiku.rag.contracts import And, Comparison, Filter, Not, Or
from haiku.rag.errors import FilterError

FIELDS = {"id": "d.id", "uri": "d.uri", "title": "d.title"}
SHAPES = {
    "=": "{} = ?",
    "!=": "{} != ?",
    "like": "{} LIKE ? ESCAPE '\\'",
    "in": "{} IN (SELECT value FROM json_each(?))",
}


def where(filter: str | Filter | None) -> tuple[str, list[str]]:
    """A condition and its values."""
    match filter:
        case None:
            return "1", []
        case And(parts=parts):
            return _joined(" AND ", parts)
        case Or(parts=parts):
            return _joined(" OR ", parts)
        case Not(part=part):
            condition, values = where(part)
            return f"NOT {condition}", values
        case Comparison(field=field, operator=operator, value=value) if field in FIELDS and operator in SHAPES:
            text = value if isinstance(value, str) else json.dumps(value)
            return f"coalesce({SHAPES[operator].format(FIELDS[field])}, 0)", [text]
    raise FilterError("acme-sql takes filters as structure, over id, uri and title.")


def _joined(word: str, parts: tuple[Filter, ...]) -> tuple[str, list[str]]:
    conditions = [where(part) for part in parts]
    text = word.join(condition for condition, _ in conditions)
    return f"({text})", [value for _, values in conditions for value in values]
