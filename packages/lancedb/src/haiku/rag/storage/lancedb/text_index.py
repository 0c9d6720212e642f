"""The two full-text indexes of the chunks: their configuration, their creation, and whether they are as they should."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from haiku.rag.storage.lancedb.commits import PATIENCE_SECONDS, committed

TEXT = "text"
IDENTIFIERS = "identifiers"
TEXT_INDEX = "text_idx"
IDENTIFIERS_INDEX = "identifiers_idx"
TEXT_INDEXES = (TEXT_INDEX, IDENTIFIERS_INDEX)
LONGEST_WORD = 128
"""The engine's own limit of 40 would lose long compounds and hashes."""
TOKENS: dict[str, Any] = {"base_tokenizer": "icu", "max_token_length": LONGEST_WORD}
"""How the text is taken apart: by dictionary where a script has no blanks, see `words` for the rest."""


@dataclass(frozen=True, kw_only=True)
class TextIndex:
    """A full-text index as it should be; `config` are parameters of `lancedb.index.FTS`."""

    name: str
    column: str
    config: dict[str, Any]


def engine_language(language: str | None) -> str:
    """A language as the engine names it; without one it is named English and not used."""
    return (language or "english").capitalize()


def text_indexes(language: str | None) -> tuple[TextIndex, TextIndex]:
    """Both indexes for a database of this language, None for one whose words are not stemmed.

    Stop words stay in the index, so that phrases keep them; a query leaves them out by itself. Positions make phrases
    possible. Identifiers are folded when they are stored and are not to be changed again.
    """
    text = {
        **TOKENS,
        "language": engine_language(language),
        "stem": language is not None,
        "remove_stop_words": False,
        "with_position": True,
        "lower_case": True,
        "ascii_folding": True,
    }
    names = {
        "base_tokenizer": "whitespace",
        "max_token_length": None,
        "stem": False,
        "remove_stop_words": False,
        "with_position": False,
        "lower_case": False,
        "ascii_folding": False,
    }
    return (
        TextIndex(name=TEXT_INDEX, column=TEXT, config=text),
        TextIndex(name=IDENTIFIERS_INDEX, column=IDENTIFIERS, config=names),
    )


def tokens(language: str | None, text: str) -> list[str]:
    """The terms that the index of stored text has for a text of this form."""
    from lancedb import tokenize

    config = {key: value for key, value in text_indexes(language)[0].config.items() if key != "with_position"}
    return [token.text for token in tokenize(text, **config)]


async def unfit_indexes(chunks: Any, language: str | None) -> list[str]:
    """The names of the full-text indexes that are missing or were made with another configuration."""
    there = {index.name: index.index_details or {} for index in await chunks.list_indices()}
    return [
        wanted.name
        for wanted in text_indexes(language)
        if wanted.name not in there or _differs(there[wanted.name], wanted.config)
    ]


def _differs(details: dict[str, Any], config: dict[str, Any]) -> bool:
    # A remote service may tell less than a local table: what it does not tell is taken to be right.
    return any(details.get(name, value) != value for name, value in config.items())


async def build_text_indexes(
    chunks: Any, language: str | None, *, names: Collection[str], patience: float = PATIENCE_SECONDS
) -> None:
    """Build these indexes over all rows, each in a commit of its own, in place of any of the same name.

    An index of an empty table would cover nothing: build once there are rows.
    """
    for wanted in text_indexes(language):
        if wanted.name in names:
            await committed(chunks, partial(_build, chunks, wanted), patience=patience)


async def _build(chunks: Any, index: TextIndex) -> None:
    from lancedb.index import FTS

    await chunks.create_index(index.column, config=FTS(**index.config), replace=True, name=index.name)
