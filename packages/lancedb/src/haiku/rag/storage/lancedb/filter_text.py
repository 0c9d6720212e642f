"""Filters as text, read into structure: no part of the text ever reaches the engine."""

import threading
from functools import lru_cache
from itertools import pairwise
from typing import Any

from haiku.rag.contracts.filter_values import check_filter, moment_of, unknown_field
from haiku.rag.contracts.filters import (
    FILTER_FIELDS,
    METADATA_PREFIX,
    MOMENT_FIELDS,
    And,
    Comparison,
    Filter,
    FilterOperator,
    FilterValue,
    Not,
    Or,
)
from haiku.rag.errors import FilterError

GRAMMAR = (
    "A filter compares id, uri, title, created_at, updated_at or metadata.KEY with a value by =, !=, <, <=, >, >=, IN, "
    "BETWEEN or LIKE, joined by AND, OR, NOT and brackets. Texts and dates stand in single quotes; numbers, TRUE and "
    "FALSE do not. A key of other characters than letters, digits and _ stands in double quotes."
)
MAX_CHARACTERS = 500_000
MAX_TOKENS = 100_000
MAX_NESTING = 30
ONE_AT_A_TIME = threading.Lock()


def parse_filter(text: str) -> Filter:
    """The structure of a filter such as `metadata.year >= 2024 AND NOT title = 'Draft'`. Blocking: imports a parser.

    Every database of a search gets the same text: the last few are remembered, and read once.
    """
    if len(text) > MAX_CHARACTERS:
        raise FilterError(f"the filter has {len(text):,} characters, more than {MAX_CHARACTERS:,}. Shorten it.")
    with ONE_AT_A_TIME:
        read = _read(text)
    if isinstance(read, str):
        raise FilterError(read)
    return read


@lru_cache(maxsize=8)
def _read(text: str) -> Filter | str:
    """The structure, or what is wrong."""
    from sqlglot import errors, exp

    if not text.strip():
        return f"the filter is empty. {GRAMMAR}"
    try:
        structure = _condition(_parsed(text, exp.Condition))
        check_filter(structure)
    except FilterError as error:
        return str(error)
    except RecursionError:
        return "the filter is nested too deeply. Write it flatter."
    except errors.ParseError as error:
        return f"the filter cannot be understood{_place(error)}. {GRAMMAR}"
    except errors.SqlglotError:
        return f"the filter cannot be understood. {GRAMMAR}"
    return structure


def _parsed(text: str, kind: Any) -> Any:
    from sqlglot import Parser, TokenType, tokenize

    tokens = tokenize(text)
    if len(tokens) > MAX_TOKENS:
        raise FilterError(f"the filter has more than {MAX_TOKENS:,} words, values and signs. Shorten it.")
    if any(token.comments for token in tokens):
        raise FilterError("the filter holds a comment. Leave it out.")
    names = [token.token_type.name for token in tokens]
    if "SEMICOLON" in names:
        raise FilterError("the filter holds a ';'. Give one condition.")
    if _nesting(names) > MAX_NESTING:
        raise FilterError(f"the filter is nested more than {MAX_NESTING} levels deep. Write it flatter.")
    for before, token in pairwise(tokens):
        # Behind a dot every word is a name, `not` and `select` among them, and so is a number.
        if (
            before.token_type is TokenType.DOT
            and token.text.replace("_", "a").isalnum()
            and text[token.start] not in "'\""
        ):
            token.token_type = TokenType.VAR
    return Parser().parse_into(kind, tokens, text)[0]


def _nesting(names: list[str]) -> int:
    """How deep the brackets and repeated words NOT go: more than a few dozen would exhaust the parser."""
    steps = {"L_PAREN": 1, "R_PAREN": -1}
    depth = deepest = nots = 0
    for name in names:
        nots = nots + 1 if name == "NOT" else 0
        depth += steps.get(name, 0)
        deepest = max(deepest, depth + nots)
    return deepest


def _place(error: Any) -> str:
    """Where the parser gave up, as far as it says so on one short line."""
    found = " ".join(str(error.errors[0].get("highlight") or "").split()) if error.errors else ""
    return f" at {found!r}" if 0 < len(found) <= 40 else ""


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
        case exp.Between() if not node.args.get("symmetric"):
            field = _field(node.this)
            low, high = _value(node.args["low"], field), _value(node.args["high"], field)
            return And((Comparison(field, ">=", low), Comparison(field, "<=", high)))
    comparison = _comparison(node)
    return Not(comparison) if node.args.get("negate") else comparison


def _comparison(node: Any) -> Comparison:
    from sqlglot import exp

    operators: dict[type, FilterOperator] = {
        exp.EQ: "=",
        exp.NEQ: "!=",
        exp.LT: "<",
        exp.LTE: "<=",
        exp.GT: ">",
        exp.GTE: ">=",
        exp.Like: "like",
    }
    if type(node) in operators:
        field = _field(node.this)
        return Comparison(field, operators[type(node)], _value(node.expression, field))
    if isinstance(node, exp.In) and _is_plain_list(node):
        field = _field(node.this)
        return Comparison(field, "in", tuple(_value(value, field) for value in node.expressions))
    raise FilterError(f"the filter uses something that filters do not have. {GRAMMAR}")


def _is_plain_list(node: Any) -> bool:
    return bool(node.expressions) and not any(node.args.get(part) for part in ("query", "unnest", "field", "is_global"))


def _field(node: Any) -> str:
    """A field by its name; the case of names matters within the metadata only."""
    from sqlglot import exp

    parts = node.parts if isinstance(node, exp.Column | exp.Dot) else []
    if not parts or not all(isinstance(part, exp.Identifier) for part in parts):
        raise FilterError(f"the filter has something other than a field on the left of a comparison. {GRAMMAR}")
    name = ".".join(str(part.name) for part in parts)
    head, dot, key = name.partition(".")
    if head.lower() + dot == METADATA_PREFIX:
        return METADATA_PREFIX + key
    if name.lower() in FILTER_FIELDS:
        return name.lower()
    raise unknown_field(name)


def _value(node: Any, field: str) -> FilterValue:
    from sqlglot import exp

    match node:
        case exp.Literal(is_string=True):
            return _moment(str(node.this), field) if field in MOMENT_FIELDS else str(node.this)
        case exp.Literal():
            return _number(str(node.this))
        case exp.Neg(this=exp.Literal(is_string=False) as literal):
            return -_number(str(literal.this))
        case exp.Boolean():
            return bool(node.this)
        case exp.Cast(this=exp.Literal(is_string=True) as literal, to=kind) if kind.this.name in ("DATE", "TIMESTAMP"):
            return _moment(str(literal.this), field)
    raise FilterError(f"the filter compares '{field}' with something other than a value. {GRAMMAR}")


def _number(text: str) -> int | float:
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise FilterError(f"the filter holds a number that cannot be read. {GRAMMAR}") from None


def _moment(text: str, field: str) -> FilterValue:
    moment = moment_of(text)
    if moment is None:
        raise FilterError(
            f"the filter compares '{field}' with a text that is no moment. "
            "Write a date such as '2026-01-31', midnight UTC, or a moment such as '2026-01-31T08:00:00+01:00'."
        )
    return moment
