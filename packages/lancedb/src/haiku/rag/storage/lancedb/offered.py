"""Where the chunks are that searches have offered: those that survive are then taken by row and not looked for."""

from collections.abc import Sequence
from typing import Any

MOST_OFFERED = 5_000


class Offered:
    """Row ids of chunks, for one handle on the chunks table, which stands still."""

    def __init__(self) -> None:
        self._chunks: Any = None
        self._row_ids: dict[str, int] = {}

    def note(self, chunks: Any, chunk_ids: Sequence[str], row_ids: Sequence[int]) -> None:
        """Remember where these chunks are; what was known of another handle is forgotten."""
        if self._chunks is not chunks or len(self._row_ids) > MOST_OFFERED:
            self._chunks, self._row_ids = chunks, {}
        self._row_ids.update(zip(chunk_ids, row_ids, strict=True))

    def row_ids(self, chunks: Any, chunk_ids: Sequence[str]) -> list[int] | None:
        """Where these chunks are, None where that is not known of every one."""
        if self._chunks is not chunks:
            return None
        found = [self._row_ids.get(chunk, -1) for chunk in dict.fromkeys(chunk_ids)]
        return None if -1 in found else found
