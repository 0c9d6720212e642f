"""Texts as token ids, and the windows in which a model reads them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from haiku.rag.embedders.local.loading import library
from haiku.rag.errors import EmbeddingError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

SEGMENT = 20_000
"""Characters that are tokenised at once: a token costs some hundred bytes, and a text may be a whole book."""


@dataclass(frozen=True, slots=True)
class Window:
    """A sequence for the model: the number of the text it comes from, its ids, and how many are the text's own."""

    text: int
    ids: tuple[int, ...]
    weight: int


class TextTokenizer:
    """A `tokenizer.json`, without the truncation and the padding that such a file may ask for.

    A special token that is spelled out in a text is read as text.
    """

    def __init__(self, data: bytes, *, where: str) -> None:
        tokenizers = library("tokenizers")
        self._where = where
        try:
            self._tokenizer: Tokenizer = tokenizers.Tokenizer.from_buffer(data)
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            self._tokenizer.encode_special_tokens = True
            self._head, self._tail = self._frame()
        except Exception as error:  # the library raises many types, down to this one
            raise EmbeddingError(f"{where} is not a tokenizer that can be read: {error}.") from error

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """The number of each text's own tokens."""
        return [len(encoding.ids) for encoding in self._encode(texts)]

    def windows(
        self, pieces: Sequence[tuple[int, str]], *, prefix: str, room: Callable[[int], int]
    ) -> Iterator[Window]:
        """The windows of numbered pieces of text, each with the prefix and the special tokens.

        `room` is asked how many of a text's tokens fit beside so many others. A piece that does not fit is divided
        evenly, so that no window is a leftover of a few tokens.
        """
        encodings = self._encode([prefix + piece for _, piece in pieces])
        for (text, _), encoding in zip(pieces, encodings, strict=True):
            ids = encoding.ids
            start = _prefix_tokens(encoding, len(prefix)) if prefix else 0
            head = self._head + tuple(ids[:start])
            body = ids[start:]
            for part in even_parts(body, room(len(head) + len(self._tail))):
                yield Window(text, (head + tuple(part) + self._tail) or (0,), max(1, len(part)))

    def _encode(self, texts: Sequence[str]) -> "list[Encoding]":
        given = [_encodable(text) for text in texts]
        try:
            return self._tokenizer.encode_batch(given, add_special_tokens=False)
        except Exception as error:  # the library raises many types, down to this one
            raise EmbeddingError(f"{self._where} failed on a text: {error}.") from error

    def _frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The special tokens that the model wants before and after a text."""
        encoding = self._tokenizer.encode("a")
        mask = encoding.special_tokens_mask
        first = sum(1 for _ in takewhile(bool, mask))
        last = sum(1 for _ in takewhile(bool, reversed(mask[first:])))
        return tuple(encoding.ids[:first]), tuple(encoding.ids[len(mask) - last :])


def segments(text: str, limit: int = SEGMENT) -> Iterator[str]:
    """The text in pieces of at most `limit` characters, cut at spaces where possible; joined, they are the text."""
    start = 0
    while len(text) - start > limit:
        end = start + limit
        space = max(text.rfind(mark, start + 1, end) for mark in " \n\t")
        cut = space if space > start else end
        yield text[start:cut]
        start = cut
    yield text[start:]


def even_parts(ids: list[int], room: int) -> Iterator[list[int]]:
    """The ids in as few parts as hold `room` each, of nearly equal length. Without ids, one empty part."""
    count = max(1, -(-len(ids) // room))
    for part in range(count):
        yield ids[part * len(ids) // count : (part + 1) * len(ids) // count]


def _prefix_tokens(encoding: "Encoding", length: int) -> int:
    """How many tokens come from the first `length` characters alone."""
    return sum(1 for _ in takewhile(lambda span: span[1] <= length, encoding.offsets))


def _encodable(text: str) -> str:
    """The text with lone surrogates, which are no characters and which the tokenizer refuses, as question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
