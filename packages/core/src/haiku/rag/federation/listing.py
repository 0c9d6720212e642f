"""Listing, counting and looking up across a selection."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from haiku.rag.contracts.filters import Filter
from haiku.rag.contracts.storage import Database, DatabaseRef
from haiku.rag.federation.boundary import Outcome, attempt_all, failure_to_raise
from haiku.rag.federation.request import OnUnavailable
from haiku.rag.federation.session import Session
from haiku.rag.models import Document

T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Reads over the selected databases, each under its deadline, all at once."""

    session: Session
    refs: tuple[DatabaseRef, ...]
    on_unavailable: OnUnavailable

    async def ask(self, read: Callable[[Database], Awaitable[T]]) -> list[tuple[DatabaseRef, T]]:
        """What each database that answered said, in the order of the selection."""
        return await self._ask(self.refs, lambda _, database: read(database))

    async def _ask(
        self, refs: Sequence[DatabaseRef], read: Callable[[DatabaseRef, Database], Awaitable[T]]
    ) -> list[tuple[DatabaseRef, T]]:
        self.session.ensure_open()

        async def part(ref: DatabaseRef) -> tuple[T]:
            return (await read(ref, await self.session.database(ref)),)

        outcomes: list[Outcome[tuple[T]]] = await attempt_all(
            self.session.kernel, refs, part, timeout_s=self.session.config.search.timeout_s
        )
        error = failure_to_raise(outcomes, self.on_unavailable)
        if error is not None:
            raise error
        for outcome in outcomes:
            if outcome.error is not None:
                logger.warning("left out: %s", outcome.error)
        return [(outcome.ref, outcome.value[0]) for outcome in outcomes if outcome.value is not None]

    async def first(self, read: Callable[[Database], Awaitable[T | None]]) -> tuple[DatabaseRef, T] | None:
        """The first answer that is not None, in the order of the selection."""
        answers = await self.ask(read)
        return next(((ref, answer) for ref, answer in answers if answer is not None), None)

    async def counts(self, filter: str | Filter | None) -> list[tuple[DatabaseRef, int]]:
        """How many documents each database holds."""
        return await self.ask(lambda database: database.count_documents(filter=filter))

    async def documents(
        self, *, limit: int | None, offset: int, filter: str | Filter | None, include_content: bool
    ) -> list[Document]:
        """A window over the interleaved databases: the first of each, then the second of each, and so on."""
        counts = await self.counts(filter)
        total = sum(count for _, count in counts)
        sizes = [count for _, count in counts]
        starts = interleaved(sizes, offset)
        ends = interleaved(sizes, total if limit is None else min(total, offset + limit))
        windows = {ref.name: (a, b) for (ref, _), a, b in zip(counts, starts, ends, strict=True) if b > a}

        async def page(ref: DatabaseRef, database: Database) -> list[Document]:
            start, end = windows[ref.name]
            return await database.list_documents(
                limit=end - start, offset=start, filter=filter, include_content=include_content
            )

        pages = await self._ask([ref for ref, _ in counts if ref.name in windows], page)
        numbered = [
            (windows[ref.name][0] + index, place, placed(document, ref))
            for place, (ref, found) in enumerate(pages)
            for index, document in enumerate(found)
        ]
        return [document for _, _, document in sorted(numbered, key=lambda entry: entry[:2])]


def placed(document: Document, ref: DatabaseRef) -> Document:
    """The document, naming the database that it came from."""
    return document.model_copy(update={"source": ref.name})


def interleaved(sizes: Sequence[int], position: int) -> list[int]:
    """How many of each list come before `position` when the lists are dealt out one item each in turn."""
    left, taken = position, [0] * len(sizes)
    while left > 0 and any(size > done for size, done in zip(sizes, taken, strict=True)):
        open_lists = [index for index, size in enumerate(sizes) if size > taken[index]]
        rounds = min(left // len(open_lists), *(sizes[index] - taken[index] for index in open_lists))
        if rounds == 0:
            for index in open_lists[:left]:
                taken[index] += 1
            return taken
        for index in open_lists:
            taken[index] += rounds
        left -= rounds * len(open_lists)
    return taken
