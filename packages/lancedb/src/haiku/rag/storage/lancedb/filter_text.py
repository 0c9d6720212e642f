"""Filters as text, read into structure: no part of the text ever reaches the engine."""

from typing import Any

from haiku.rag.contracts.filters import FILTER_FIELDS, And, Comparison, Filter, Not, Or
from haiku.rag.errors import FilterError
from haiku.rag.plugins.messages import suggestion

GRAMMAR = (
    "A filter compares id, uri or title with text in single quotes by =, !=, <>, IN or LIKE, joined by AND, OR, NOT."
)


def parse_filter(text: str) -> Filter:
    """The structure of a filter such as `uri LIKE '%.md' AND NOT title = 'Draft'`. Blocking: imports a parser."""
    from sqlglot import errors, parse, tokenize

    if not text.strip():
        raise FilterError(f"the filter is empty. {GRAMMAR}")
    try:
        tokens = tokenize(text)
        if any(token.comments for token in tokens):
            raise FilterError("the filter holds a comment. Leave it out.")
        if any(token.token_type.name == "SEMICOLON" for token in tokens):
            raise FilterError("the filter holds a ';'. Give one condition.")
        return _condition(parse(text)[0])
    except (errors.SqlglotError, RecursionError):
        raise FilterError(f"the filter cannot be understood. {GRAMMAR}") from None


def _condition(node: Any) -> Filter:
    from sqlglot import exp

    match node:
        case exp.Paren():
            return _condition(node.this)
        case exp.And():
            return And(tuple(_condition(part) for part in node.flatten(unnest=False)))
        case exp.Or():
            return Or(tuple(_condition(part) for part in node.flatten(unnest=False)))
        case exp.Not():
            return Not(_condition(node.this))
    comparison = _comparison(node)
    return Not(comparison) if node.args.get("negate") else comparison


def _comparison(node: Any) -> Comparison:
    from sqlglot import exp

    match node:
        case exp.EQ():
            return Comparison(_field(node.this), "=", _text(node.expression))
        case exp.NEQ():
            return Comparison(_field(node.this), "!=", _text(node.expression))
        case exp.Like():
            return Comparison(_field(node.this), "like", _text(node.expression))
        case exp.In() if _is_plain_list(node):
            return Comparison(_field(node.this), "in", tuple(_text(value) for value in node.expressions))
    raise FilterError(f"the filter uses something that filters do not have. {GRAMMAR}")


def _is_plain_list(node: Any) -> bool:
    return bool(node.expressions) and not any(node.args.get(part) for part in ("query", "unnest", "field", "is_global"))


def _field(node: Any) -> str:
    from sqlglot import exp

    if not isinstance(node, exp.Column) or node.table:
        raise FilterError(f"the filter has something other than a field on the left of a comparison. {GRAMMAR}")
    name = str(node.name)
    if name.lower() not in FILTER_FIELDS:
        known = ", ".join(FILTER_FIELDS)
        raise FilterError(
            f"the filter names an unknown field '{name}'.{suggestion(name, FILTER_FIELDS)} Known: {known}."
        )
    return name.lower()


def _text(node: Any) -> str:
    from sqlglot import exp

    if not isinstance(node, exp.Literal) or not node.is_string:
        raise FilterError(f"the filter compares with something other than text in single quotes. {GRAMMAR}")
    return str(node.this)
