"""Text as it is stored, searched and put into conditions."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from haiku.rag.models.text import clean_text

INVISIBLE = "\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufe00-\ufe0f"
ACCENTS = "\u0300-\u036f"
"""What NFKC has left apart: marks that no letter exists with, such as the dot of a folded `İ`."""
POINTS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
)
"""Hebrew points and Arabic vowel signs, which most writers leave out."""
GREEK = "ΐάέήίΰϊϋόύώ\u1f00-\u1fff"
"""Greek letters with an accent, which capitals are written without."""
REPLACED = {"ё": "е", "ș": "ş", "ț": "ţ", "״": '"', "\u0640": ""}
"""Letters that are written either way; the Romanian ones in the form that the engine's stemmer knows."""
FOLDED = re.compile(f"[{INVISIBLE}{ACCENTS}{POINTS}{GREEK}{''.join(REPLACED)}]")

SEPARATOR = re.compile(r"[.:'’‘,;](?=\w)")
"""Beside `_`, what the tokenizer takes for a part of a word, and a reader of addresses and elisions does not."""

PARTICLES = (
    "에게서|으로서|으로써|이라도|입니다|에서|에게|께서|한테|으로|로서|로써|까지|부터|처럼|보다|마다|조차|마저|밖에|이나|라도|이다|"
    "은|는|이|가|을|를|의|에|께|로|와|과|도|만"
)
PARTICLE = re.compile(PARTICLES)
INFLECTED = re.compile(rf"(?<![가-힣])([가-힣]{{2,}}?)((?:{PARTICLES}){{1,16}}+)(?![가-힣])")
"""A Korean noun of two syllables or more with the particles that are written onto it; a bound keeps long runs quick."""

HUMP = re.compile("(?<=[a-z0-9])[A-Z]")
CAMEL = re.compile("(?<![A-Za-z0-9])[A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]*")
CAMEL_PART = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

LETTER = "0-9a-z\u00df-\u00f6\u00f8-\u024f\u0370-\u03ff\u0400-\u052f"
"""What identifiers are made of once case-folded: Latin, Greek and Cyrillic, so that they end where Chinese goes on."""
JOINTS = "[._/@&:+#~>-]{1,3}"
IDENTIFIER = re.compile(rf"(?<![{LETTER}])(?:[@.]|(?<!_)_+)?[{LETTER}]+(?:{JOINTS}[{LETTER}]+)*(?:\+{{1,2}}|#|_+)?")
BEFORE = "\"'`,;:!?()[]{}<>*|"
AFTER = f"{BEFORE}."
PLACES = re.compile("[/@&:~>]+")
SYMBOLS = re.compile(rf"[{LETTER}]+(?:\++|#)(?=[^+#])")
VERSION = re.compile(r"v[0-9]+(?:\.[0-9]+)+")
LONGEST_IDENTIFIER = 256


def searchable(text: str) -> str:
    """What full text holds of a text: its words, and after them the parts of its camelCase."""
    parts = camel_parts(text)
    return f"{words(text)}\n{' '.join(parts)}" if parts else words(text)


def words(text: str, *, particles: bool = True) -> str:
    """The form in which the words of texts and queries meet; the tokenizer then finds them in any script.

    Korean particles become words of their own, or are left out.
    """
    plain = folded(text)
    if not plain.isascii():
        plain = INFLECTED.sub(_apart if particles else r"\1", plain)
    return SEPARATOR.sub(" ", plain.replace("_", " "))


def folded(text: str) -> str:
    """Cleaned, compatibility-normalised and case-folded, without the marks that a writer may leave out."""
    whole = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", clean_text(text)).casefold())
    return whole if whole.isascii() else FOLDED.sub(_plain, whole)


def _plain(match: re.Match[str]) -> str:
    letter = match[0]
    if letter in REPLACED:
        return REPLACED[letter]
    base = unicodedata.normalize("NFD", letter)[0]
    return base if base.isalpha() else ""


def _apart(match: re.Match[str]) -> str:
    return " ".join([match[1], *PARTICLE.findall(match[2])])


def camel_parts(text: str) -> list[str]:
    """The words that names such as `parseHttpHeader` are put together from; `GitHub` and `iPhone` are one word."""
    if not HUMP.search(text):
        return []
    names = (CAMEL_PART.findall(name) for name in CAMEL.findall(text))
    return [part.lower() for parts in names if _is_put_together(parts) for part in parts]


def _is_put_together(parts: list[str]) -> bool:
    return len(parts) > 2 or (len(parts) > 1 and parts[0].islower() and len(parts[0]) > 1)


def identifiers(text: str) -> str:
    """The identifiers of a text that the tokenizer would take apart, each as one word, blanks between them.

    They are words held together by `_ - . / : @ &` and the like, or marked with `+`, `#` or a dot before them. Of a
    longer one its parts count too where they are identifiers themselves: `example.org` in an address, `C++` in `C++17`.
    """
    # Most words are plain ones, and telling so is much cheaper than the expression.
    runs = (run.lstrip(BEFORE).rstrip(AFTER) for run in dict.fromkeys(folded(text).split()))
    names = (name for run in runs if not run.isalnum() for name in _names(run))
    return " ".join(dict.fromkeys(name for name in names if len(name) <= LONGEST_IDENTIFIER))


def _names(run: str) -> Iterator[str]:
    for name in IDENTIFIER.findall(run):
        if not name.isalnum():
            yield name
            yield from _names_within(name)


def _names_within(name: str) -> Iterator[str]:
    for place in PLACES.split(name):
        for part in map(_without_joint, (place, *place.split("."))):
            if not part.isalnum() and has_words(part):
                yield part
                yield from (match[0] for match in [SYMBOLS.match(part)] if match)
                yield from (match[0][1:] for match in [VERSION.match(part)] if match)


def _without_joint(part: str) -> str:
    return part.rstrip("-.")


def has_words(text: str) -> bool:
    """Whether there is anything to look up: one letter or digit."""
    return any(character.isalnum() for character in text)


def quoted(value: str) -> str:
    """The value as a string literal of a condition."""
    return "'" + clean_text(value).replace("'", "''") + "'"


def one_of(column: str, values: Iterable[str]) -> str:
    """A condition that a column's value is among the values, of which there is one at least."""
    return f"{column} IN ({', '.join(map(quoted, values))})"
