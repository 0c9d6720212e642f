"""The documents' metadata as filters see it: for each key its values, by kind."""

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.filter_values import ValueKind, kind_of, metadata_value, moment_of
from haiku.rag.contracts.filters import FilterOperator
from haiku.rag.storage.lancedb.filter_columns import Mask, is_exact, microseconds, numbers_that, texts_that

AT_ONCE = 500
"""So many are parsed in one call: few calls, and none that keeps the event loop's thread waiting for long."""
MOST_COLUMNS = 32
KINDS: dict[type, ValueKind] = {str: "text", int: "number", float: "number", bool: "truth"}


@dataclass(frozen=True)
class Values:
    """The values of one kind, and whose they are: a document that has a list comes once a value."""

    values: Any
    places: NDArray[np.int64]

    def that(self, operator: FilterOperator, value: Any) -> NDArray[np.int64]:
        """Whose values satisfy a comparison with a value of their kind, or with several by `in`."""
        compare = texts_that if isinstance(self.values, pa.Array) else numbers_that
        return self.places[compare(self.values, operator, value)]


class MetadataColumn:
    """What the documents have under one key."""

    def __init__(self, values: Iterable[Any], *, size: int) -> None:
        found: dict[ValueKind, tuple[list[Any], list[int]]] = {kind: ([], []) for kind in KINDS.values()}
        lists = []
        for place, value in enumerate(values):
            if isinstance(value, list):
                lists.append(place)
            for each in value if isinstance(value, list) else (value,):
                kind = KINDS.get(type(each))
                # What is not a number, though of its type, equals and precedes nothing.
                if kind is not None and each == each:  # noqa: PLR0124
                    found[kind][0].append(each)
                    found[kind][1].append(place)
        self._size = size
        self._lists = np.array(lists, np.int64)
        self._held = {kind: _values(kind, *pair) for kind, pair in found.items()}

    def mask(self, operator: FilterOperator, value: Any) -> Mask:
        """Which documents satisfy the comparison."""
        if operator == "!=":
            comparable = self._marked(self._of_kind(kind_of(value)).places, self._lists)
            return comparable & ~self.mask("=", value)
        if operator == "in":
            kinds = {kind_of(each) for each in value}
            return self._marked(
                *(self._that(kind, "in", [each for each in value if kind_of(each) == kind]) for kind in kinds)
            )
        return self._marked(self._that(kind_of(value), operator, value))

    def _that(self, kind: ValueKind | None, operator: FilterOperator, value: Any) -> NDArray[np.int64]:
        if kind == "moment":
            value = microseconds(value) if isinstance(value, datetime) else [microseconds(each) for each in value]
        return self._of_kind(kind).that(operator, value)

    def _of_kind(self, kind: ValueKind | None) -> Values:
        return self._moments if kind is None or kind == "moment" else self._held[kind]

    @cached_property
    def _moments(self) -> Values:
        """The texts that are ISO dates or moments."""
        texts = self._held["text"]
        moments = list(map(moment_of, texts.values.to_pylist()))
        found = [(microseconds(moment), place) for moment, place in zip(moments, texts.places, strict=True) if moment]
        return Values(*np.array(found, np.int64).reshape(-1, 2).T)

    def _marked(self, *places: NDArray[np.int64]) -> Mask:
        mask = np.zeros(self._size, bool)
        for each in places:
            mask[each] = True
        return mask


class Metadata:
    """The metadata of one state's documents, parsed when a filter first asks for it.

    What an earlier state has parsed is taken over for the texts that are still there.
    """

    def __init__(self, texts: pa.ChunkedArray, *, earlier: "Metadata | None" = None) -> None:
        self._texts = texts
        self._parsed: list[Any] | None = None
        self._columns: dict[str, MetadataColumn] = {}
        self._lock = threading.Lock()
        self._known = (earlier.known() if earlier else None) or (pa.chunked_array([], pa.string()), [])

    def column(self, key: str) -> MetadataColumn:
        """The values under a key; the last few keys are remembered. Blocking."""
        with self._lock:
            column = self._columns.pop(key, None)
            if column is None:
                values = (metadata_value(each, key) for each in self._objects())
                column = MetadataColumn(values, size=len(self._texts))
            self._columns[key] = column
            if len(self._columns) > MOST_COLUMNS:
                del self._columns[next(iter(self._columns))]
            return column

    def known(self) -> tuple[pa.ChunkedArray, list[Any]]:
        """The texts that were parsed last, and what they are."""
        return self._known

    def _objects(self) -> list[Any]:
        if self._parsed is None:
            texts = self._texts.to_pylist()
            known = dict(zip(self._known[0].to_pylist(), self._known[1], strict=True))
            missing = [text for text in dict.fromkeys(texts) if text not in known]
            for start in range(0, len(missing), AT_ONCE):
                some = missing[start : start + AT_ONCE]
                known.update(zip(some, json.loads(f"[{','.join(some)}]"), strict=True))
            self._parsed = [known[text] for text in texts]
            self._known = (self._texts, self._parsed)
        return self._parsed


def _values(kind: ValueKind, values: Sequence[Any], places: Sequence[int]) -> Values:
    held = np.array(places, np.int64)
    if kind == "text":
        return Values(pa.array(values, pa.string()), held)
    if kind == "truth":
        return Values(np.array(values, bool), held)
    return Values(np.array(values, float if all(map(is_exact, values)) else object), held)
