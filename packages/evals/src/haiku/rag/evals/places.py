"""Where questions are asked: open clients, and what their results are called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from haiku.rag.client import DatabaseScope, HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.contracts import DatabaseRef, Filter
from haiku.rag.evals.datasets import Case, Dataset, Grades, Suite, key_of
from haiku.rag.evals.variants import Mode
from haiku.rag.models import Document, SearchResult


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which databases there are: one a dataset, one of all, and those that were there before; each may be missing."""

    single: tuple[DatabaseRef, ...] = ()
    pooled: DatabaseRef | None = None
    given: DatabaseScope | None = None


@dataclass(frozen=True, kw_only=True)
class Place:
    """A mode, with the client that serves it. `keys` gives the passages' keys where URIs are not the keys already."""

    mode: Mode
    client: HaikuRAG
    keys: Mapping[str, str] = field(default_factory=dict)

    def sources(self, case: Case) -> list[str] | None:
        """Which of the client's databases to ask."""
        return [case.dataset] if self.mode is Mode.ALONE else None

    def judged(self, case: Case) -> Grades:
        """What answers the question here."""
        return case.own if self.mode is Mode.ALONE else case.everywhere

    def ranking(self, results: Sequence[SearchResult]) -> dict[str, float]:
        """The passages found, best first, with their scores; a document of several chunks counts at its best one."""
        ranking: dict[str, float] = {}
        for result in results:
            ranking.setdefault(self.key(result.document_uri, result.document_id), result.score)
        return ranking

    def key(self, uri: str | None, document_id: str) -> str:
        """The passage that a document is: by its URI, else by its id."""
        return self.keys.get(uri or "") or self.keys.get(document_id) or uri or document_id

    async def selected(self, filter: str | Filter) -> frozenset[str]:
        """The passages that a filter selects."""
        documents: list[Document] = await self.client.list_documents(filter=filter)
        return frozenset(self.key(document.uri, document.id) for document in documents)


@asynccontextmanager
async def open_places(
    layout: Layout, config: AppConfig, modes: Sequence[Mode], suite: Suite
) -> AsyncIterator[list[Place]]:
    """A place for each mode, in their order; databases are opened for reading."""
    async with AsyncExitStack() as stack:

        async def opened(scope: DatabaseScope) -> HaikuRAG:
            return await stack.enter_async_context(HaikuRAG.over(scope, config, read_only=True))

        clients: dict[str, HaikuRAG] = {}
        if layout.single and {Mode.ALONE, Mode.FEDERATED} & set(modes):
            clients[Mode.ALONE] = clients[Mode.FEDERATED] = await opened(DatabaseScope(layout.single))
        if layout.pooled is not None and Mode.POOLED in modes:
            clients[Mode.POOLED] = await opened(DatabaseScope((layout.pooled,)))
        if layout.given is not None:
            clients[Mode.GIVEN] = await opened(layout.given)
        keys = names_of(suite.datasets) if layout.given is not None else {}
        yield [Place(mode=mode, client=clients[mode], keys=keys if mode is Mode.GIVEN else {}) for mode in modes]


def names_of(datasets: Iterable[Dataset]) -> dict[str, str]:
    """What a passage may be called in a database that was there before, and its key: its id, or its key.

    An id that several datasets have is none of theirs alone, so only the key will do there.
    """
    names: dict[str, str] = {}
    twice: set[str] = set()
    for dataset in datasets:
        judged = {passage: None for grades in dataset.judgments.values() for passage in grades}
        for passage in {**judged, **{passage.id: None for passage in dataset.passages}}:
            key = key_of(dataset.name, passage)
            twice |= {passage} if passage in names else set()
            names |= {passage: key, key: key}
    return {name: key for name, key in names.items() if name not in twice}
