"""Filling the places of a list: at most so many a database, and a passage of several databases once."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from haiku.rag.models import Chunk

PICTURE = "picture"


@dataclass(kw_only=True)
class Slots:
    """Takes rows best first.

    `sources` is the database of each row, `cap` how many hits one database may have. `passage` gives what a row says,
    None for what is like nothing else; without it every row stands for itself. `also` maps a row that was taken to
    the rows of other databases that say the same.
    """

    sources: NDArray[np.int32]
    cap: int | None = None
    passage: Callable[[int], Hashable | None] | None = None
    also: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def filled(self, rows: Iterable[int]) -> NDArray[np.int64]:
        """The rows that have a place of their own, best first."""
        taken: list[int] = []
        full: Counter[int] = Counter()
        holders: dict[Hashable, list[int]] = defaultdict(list)
        passed: dict[Hashable, list[int]] = defaultdict(list)
        for row in rows:
            said = None if self.passage is None else self.passage(row)
            holder = None if said is None else self._holder(holders[said], row)
            source = int(self.sources[row])
            if holder is not None:
                self.also[holder].append(row)
            elif self.cap is not None and full[source] >= self.cap:
                passed[said].append(row)
            else:
                taken.append(row)
                full[source] += 1
                if said is not None:
                    holders[said].append(row)
                    self.also[row] += [other for other in passed.pop(said, []) if self.sources[other] != source]
        return np.array(taken, dtype=np.int64)

    def _holder(self, holders: Iterable[int], row: int) -> int | None:
        """The hit of another database that the row is a duplicate of: one that does not name this database yet."""
        source = self.sources[row]
        others = [holder for holder in holders if self.sources[holder] != source]
        fresh = [holder for holder in others if all(self.sources[named] != source for named in self.also[holder])]
        return next(iter([*fresh, *others]), None)


def passage_of(chunk: Chunk) -> Hashable | None:
    """What makes two chunks one passage: text and headings, alike but for white space and Unicode composition.

    None for a picture, whose words are not what it shows, and for a chunk without words.
    """
    if chunk.labels == [PICTURE]:
        return None
    text = _plain(chunk.content)
    return (text, *map(_plain, chunk.headings)) if text else None


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
