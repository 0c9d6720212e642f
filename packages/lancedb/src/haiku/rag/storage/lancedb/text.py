"""Text as it is stored, searched and put into conditions."""

import re
import unicodedata
from collections.abc import Iterable

from haiku.rag.models.text import clean_text

IDENTIFIER = re.compile(r"[a-z][+#]{1,2}")
"""A first form: `C++`, `C#`, `F#`."""


def searchable(text: str) -> str:
    """The form in which texts and queries meet: cleaned, compatibility-normalised and case-folded."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", clean_text(text)).casefold())


def identifiers(text: str) -> str:
    """The code identifiers of a text, each as one word."""
    return " ".join(dict.fromkeys(IDENTIFIER.findall(searchable(text))))


def has_words(text: str) -> bool:
    """Whether there is anything to look up: one letter or digit."""
    return any(character.isalnum() for character in text)


def quoted(value: str) -> str:
    """The value as a string literal of a condition."""
    return "'" + clean_text(value).replace("'", "''") + "'"


def one_of(column: str, values: Iterable[str], *, negated: bool = False) -> str:
    """A condition that a column's value is among the values, or is not."""
    return f"{column} {'NOT IN' if negated else 'IN'} ({', '.join(map(quoted, values))})"
