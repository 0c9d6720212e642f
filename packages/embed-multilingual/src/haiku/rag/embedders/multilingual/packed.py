"""The packed file of weights: one blob with a vocabulary, a table of characters and the tensors.

Everything is little-endian. A header of nine numbers is followed by the vocabulary (counts, offsets, scores, spelling),
the characters that are read as others, and a directory of the tensors. A quantised row is a series of blocks of 32
weights: a scale in float16, then 16 bytes that hold weight j in the low half of byte j and weight j + 16 in the high.
"""

from dataclasses import dataclass
from itertools import pairwise
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.embedder import Vectors

BLOCK = 32
ZERO = 8
"""The weight that the stored number 8 stands for is 0."""

_HEADER = Struct("<4sI7ifi")
_VOCABULARY = Struct("<5iQ")
_TABLE = Struct("<iI")
_CHARACTER = Struct("<IB")
_ENTRY = Struct("<BIQQ")


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The pieces of which texts are made, by id, with their scores; and the ids that stand for no text."""

    pieces: list[bytes]
    scores: list[float]
    start: int
    end: int
    padding: int
    unknown: int

    @property
    def special(self) -> frozenset[int]:
        """The ids that are no text: those named here, and the mask, which is last."""
        return frozenset({self.start, self.end, self.padding, self.unknown, len(self.pieces) - 1})


class Reader:
    """Reads numbers one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def numbers(self, shape: Struct) -> tuple[Any, ...]:
        """The next numbers, of that shape."""
        found = shape.unpack_from(self._data, self._at)
        self._at += shape.size
        return found

    def array(self, kind: str, count: int) -> NDArray[Any]:
        """The next `count` numbers of one kind."""
        found = np.frombuffer(self._data, kind, count, self._at)
        self._at += found.nbytes
        return found

    def text(self, length: int) -> bytes:
        """The next bytes."""
        self._at += length
        return self._data[self._at - length : self._at]


class PackedModel:
    """What the file holds. Its bytes are taken for what they should be: they were compared with a checksum."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        reader = Reader(data)
        _, _, self.dimension, self.layers, self.heads, self.inner, _, self.positions, _, self.epsilon, _ = (
            reader.numbers(_HEADER)
        )
        self.vocabulary = _vocabulary(reader)
        self.characters = _characters(reader)
        self._places = _places(reader)

    def floats(self, name: str) -> Vectors:
        """A tensor that is stored as it is, in one dimension."""
        start, length = self._places[name]
        return np.frombuffer(self._data, "<f4", length // 4, start).astype(np.float32)

    def blocks(self, name: str, columns: int) -> NDArray[np.uint8]:
        """The blocks of a quantised tensor, of shape `(rows, columns / 32, 18)`."""
        start, length = self._places[name]
        return np.frombuffer(self._data, np.uint8, length, start).reshape(-1, columns // BLOCK, 2 + BLOCK // 2)


def scales(blocks: NDArray[np.uint8]) -> Vectors:
    """The scale of each block."""
    return np.ascontiguousarray(blocks[..., :2]).view("<f2")[..., 0].astype(np.float32)


def stored_weights(blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The 32 numbers of each block, from 0 to 15, before they are scaled."""
    halves = blocks[..., 2:]
    return np.concatenate([halves & 15, halves >> 4], axis=-1)


def _vocabulary(reader: Reader) -> Vocabulary:
    count, start, end, padding, unknown, length = reader.numbers(_VOCABULARY)
    offsets = reader.array("<u4", count + 1).tolist()
    scores = reader.array("<f4", count).tolist()
    spelling = reader.text(length)
    pieces = [spelling[begin:stop] for begin, stop in pairwise(offsets)]
    return Vocabulary(pieces=pieces, scores=scores, start=start, end=end, padding=padding, unknown=unknown)


def _characters(reader: Reader) -> dict[int, str]:
    """What characters are read as; nothing, for control characters."""
    count, _ = reader.numbers(_TABLE)
    found: dict[int, str] = {}
    for _ in range(count):
        character, length = reader.numbers(_CHARACTER)
        found[character] = "".join(map(chr, reader.array("<u4", length)))
    return found


def _places(reader: Reader) -> dict[str, tuple[int, int]]:
    """Where each tensor begins, and how many bytes it has."""
    (count,) = reader.numbers(Struct("<i"))
    found: dict[str, tuple[int, int]] = {}
    for _ in range(count):
        (length,) = reader.numbers(Struct("<H"))
        name = reader.text(length).decode()
        _, _, start, size = reader.numbers(_ENTRY)
        found[name] = (start, size)
    return found
