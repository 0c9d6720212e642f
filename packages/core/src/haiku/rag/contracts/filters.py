"""Filters as structure: what a storage engine compiles, whatever text they came from."""

from dataclasses import dataclass
from typing import Literal

FilterOperator = Literal["=", "!=", "in", "like"]
FILTER_FIELDS = ("id", "uri", "title")


@dataclass(frozen=True)
class Comparison:
    r"""`field operator value` over a document's `id`, `uri` or `title`.

    A string for `=`, `!=` and `like` (`%` any run of characters, `_` any one, `\` makes the next one plain), a
    tuple of strings for `in`. All compare letter by letter, capitals included. A document without the field satisfies
    none of them, `!=` included.
    """

    field: str
    operator: FilterOperator
    value: str | tuple[str, ...]


@dataclass(frozen=True)
class And:
    """All of the parts."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True)
class Or:
    """Any of the parts."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True)
class Not:
    """Every document that the part does not select."""

    part: "Filter"


Filter = Comparison | And | Or | Not
