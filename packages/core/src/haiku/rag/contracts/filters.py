"""Filters as structure: what a storage engine compiles, whatever text they came from."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

FilterOperator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "like"]
FilterValue = str | int | float | bool | datetime

TEXT_FIELDS = ("id", "uri", "title")
MOMENT_FIELDS = ("created_at", "updated_at")
FILTER_FIELDS = (*TEXT_FIELDS, *MOMENT_FIELDS)
METADATA_PREFIX = "metadata."
"""`metadata.KEY` is a field too: the value of a document's metadata under this key."""


@dataclass(frozen=True)
class Comparison:
    r"""`field operator value` over a document's `id`, `uri`, `title`, `created_at`, `updated_at` or `metadata.KEY`.

    `=`, `!=`, `<`, `<=`, `>`, `>=` take one value; `in` a tuple of them; `like` a string (`%` any run of characters,
    `_` any one, `\` makes the next one plain). Texts compare letter by letter, capitals included, and by code point;
    moments take an aware `datetime`.

    A metadata key is looked up whole, then part by part at its dots: `metadata.author.name` is the key `author.name`,
    or `name` within `author`. Numbers compare with numbers, `true` and `false` with themselves, texts with texts, and a
    text that is an ISO date or moment with a `datetime`. A list satisfies a comparison that one of its values
    satisfies, and `!=` where none of them is equal.

    A document without the field, or with a value of another type, satisfies none of them, `!=` included.
    """

    field: str
    operator: FilterOperator
    value: FilterValue | tuple[FilterValue, ...]


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
