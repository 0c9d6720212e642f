"""Texts as token ids."""

import re
from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING
from unicodedata import normalize

from haiku.rag.embedders.multilingual.libraries import imported
from haiku.rag.embedders.multilingual.packed import PackedModel

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SEGMENT = 10_000
"""Characters that are read at once: what the library keeps of a token is far larger than its id."""

_SURROGATES = range(0xD800, 0xE000)
_NEVER_IN_A_TEXT = " "
_SPACES = re.compile(" {2,}")
_BREAK = re.compile(r"\s(?=\S*\Z)")


class PieceTokenizer:
    """SentencePiece's unigram model: a text is divided into the pieces that are likeliest together.

    A special token that is spelled out in a text is read as text; a lone surrogate, which is no character, as a space.
    """

    def __init__(self, packed: PackedModel) -> None:
        self._characters = packed.characters | dict(zip(_SURROGATES, repeat(" ")))
        self._tokenizer = _unigram(packed)
        self.start, self.end = packed.vocabulary.start, packed.vocabulary.end

    def ids(self, text: str) -> list[int]:
        """The ids of a text's own tokens."""
        written = _SPACES.sub(" ", normalize("NFC", text).translate(self._characters)).strip(" ")
        return list(self._tokenizer.encode(written, add_special_tokens=False).ids)


def _unigram(packed: PackedModel) -> "Tokenizer":
    library = imported("tokenizers")
    special = packed.vocabulary.special
    spelled = [
        ((_NEVER_IN_A_TEXT if number in special else "") + piece.decode(), score)
        for number, (piece, score) in enumerate(zip(packed.vocabulary.pieces, packed.vocabulary.scores, strict=True))
    ]
    tokenizer: Tokenizer = library.Tokenizer(library.models.Unigram(spelled, packed.vocabulary.unknown, False))
    tokenizer.pre_tokenizer = library.pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    return tokenizer


def segments(text: str) -> Iterator[str]:
    """The text in pieces of bounded length, cut before white space where there is some; joined, they are the text."""
    start = 0
    while len(text) - start > SEGMENT:
        last = _BREAK.search(text, start + 1, start + SEGMENT)
        end = last.start() if last else start + SEGMENT
        yield text[start:end]
        start = end
    yield text[start:]
