"""The engine's full-text query for what a user typed."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from haiku.rag.models.text import clean_text
from haiku.rag.storage.lancedb.text import has_words, identifiers, words
from haiku.rag.storage.lancedb.text_index import IDENTIFIERS, TEXT, TOKENS, engine_language

CURLY_QUOTES = str.maketrans("“”„‟", '""""')
ABBREVIATION = re.compile('(?<=[א-ת])"(?=[א-ת])')
"""A quotation mark inside a Hebrew word belongs to the word."""
PHRASE = re.compile('(?<![0-9])"([^"]*)"')
"""A mark right after a digit is one of inches or seconds."""
MOST_PHRASES = 64
"""Phrases beyond these are taken as words: each costs a lookup of its own."""
SYMBOLS = "+#"
WHOLE_NAME = 1.5
"""What a whole identifier counts beside its parts."""
COMPOUND = re.compile(r"[^\W\d_]+(?:[-/]+[^\W\d_]+)+|(?:[^\W\d_]\.)+[^\W\d_]")
"""Words such as `well-known`, `and/or` and `e.g`, which may be a name and in a sentence hardly are."""
SENTENCE = 5
"""From so many words on, a query is a sentence."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a query asks for: `phrases` and the identifiers of `required` have to be there, the rest may be."""

    phrases: tuple[str, ...]
    required: str
    optional: str
    names: str


@dataclass(frozen=True)
class Term:
    """A word of a query as one field of the index is asked for it, and what its score is multiplied by."""

    column: str
    text: str
    boost: float = 1.0


@lru_cache(maxsize=64)
def keyword_query(text: str, *, language: str | None) -> Any | None:
    """A query of `lancedb.query` for one call of `nearest_to_text`, None where there is nothing to look up.

    Words are optional, and words alone make a plain query over one field. What stands in quotation marks is a phrase,
    and each phrase has to be there. Identifiers are looked up in their own field as well, and score on top of their
    words; those that end in `+` or `#` have to be there where a phrase has them, because its words do not show them.
    `language` is the one of the database's index: its stop words are left out, except in phrases.
    """
    return _combined(_parts(text, language))


@lru_cache(maxsize=64)
def keyword_terms(text: str, *, language: str | None) -> tuple[Term, ...]:
    """The terms that a passage is scored by for a query, a repeated one as often as it is there."""
    parts = _parts(text, language)
    said = _tokens(" ".join([*parts.phrases, parts.optional]))
    named = [*((name, 1.0) for name in parts.required.split()), *((name, WHOLE_NAME) for name in parts.names.split())]
    return (*(Term(TEXT, token) for token in said), *(Term(IDENTIFIERS, name, boost) for name, boost in named))


@lru_cache(maxsize=64)
def _parts(text: str, language: str | None) -> Parts:
    plain = ABBREVIATION.sub("״", unicodedata.normalize("NFKC", clean_text(text)).translate(CURLY_QUOTES))
    phrases, rest = _phrases_and_rest(plain)
    marked = [name for phrase in phrases for name in identifiers(phrase).split() if name[-1] in SYMBOLS]
    return Parts(
        phrases=tuple(dict.fromkeys(words(phrase) for phrase in phrases)),
        required=" ".join(dict.fromkeys(marked)),
        optional=_without_stop_words(words(rest, particles=False), language),
        names=_names(plain),
    )


def _phrases_and_rest(text: str) -> tuple[list[str], str]:
    """What is quoted and holds a word, and the text around it; a mark without its partner counts for nothing."""
    phrases: list[str] = []

    def taken(match: re.Match[str]) -> str:
        if not has_words(match[1]) or len(phrases) == MOST_PHRASES:
            return f" {match[1]} "
        phrases.append(match[1])
        return " "

    rest = PHRASE.sub(taken, text)
    return phrases, rest


def _names(text: str) -> str:
    """The identifiers worth a lookup; a sentence's compounds are not, as they cost time and rank worse."""
    names = identifiers(text)
    if not names or len(text.split()) < SENTENCE:
        return names
    return " ".join(name for name in names.split() if not COMPOUND.fullmatch(name))


def _without_stop_words(text: str, language: str | None) -> str:
    """The words of a query that count in a language.

    The engine would look for stop words among stems, and so miss some and take other words for them.
    """
    if not has_words(text):
        return ""
    if language is None:
        return text
    return " ".join(_tokens(text, stop_words_of=language))


def _tokens(text: str, *, stop_words_of: str | None = None) -> list[str]:
    """The words as the engine takes them apart, unchanged."""
    if not has_words(text):
        return []
    from lancedb import tokenize

    named = {**TOKENS, "language": engine_language(stop_words_of), "remove_stop_words": stop_words_of is not None}
    return [token.text for token in tokenize(text, **named, lower_case=False, stem=False, ascii_folding=False)]


def _combined(parts: Parts) -> Any | None:
    from lancedb.query import BooleanQuery, FullTextOperator, MatchQuery, Occur, PhraseQuery

    # The engine's classes hide their defaults from type checkers.
    needed: list[Any] = [PhraseQuery(phrase, TEXT) for phrase in parts.phrases]  # type: ignore[call-arg]
    if parts.required:
        needed.append(MatchQuery(parts.required, IDENTIFIERS, operator=FullTextOperator.AND))  # type: ignore[call-arg]
    wanted: list[Any] = []
    if parts.optional:
        wanted.append(MatchQuery(parts.optional, TEXT))  # type: ignore[call-arg]
    if parts.names:
        wanted.append(MatchQuery(parts.names, IDENTIFIERS, boost=WHOLE_NAME))  # type: ignore[call-arg]
    if len(needed) + len(wanted) < 2:
        return next(iter(needed + wanted), None)
    return BooleanQuery([*((Occur.MUST, query) for query in needed), *((Occur.SHOULD, query) for query in wanted)])
