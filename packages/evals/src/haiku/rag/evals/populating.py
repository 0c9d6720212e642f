"""Databases of datasets: one a dataset, and one of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from haiku.rag.client import DatabaseScope, HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.contracts import DatabaseRef, Embedder
from haiku.rag.errors import AmbiguousDatabaseError, HaikuRagError
from haiku.rag.evals.configured import embedder_name, engine_of, for_populating, language_setting
from haiku.rag.evals.datasets import Dataset, Suite, key_of
from haiku.rag.evals.progress import OnStep, Step, unseen
from haiku.rag.evals.workspace import Vectors, Workspace, database_key
from haiku.rag.models import Chunk, DocumentImport, EmbeddingIdentity

FORMAT = "1"
"""Changes when passages are stored otherwise, so that databases of before are not used again."""
BATCH = 1_000
POOLED = "pooled"


async def populate(
    client: HaikuRAG, dataset: Dataset, *, vectors: Vectors | None = None, on_step: OnStep = unseen
) -> int:
    """Store the passages of a dataset in the client's one database; how many there are.

    A passage becomes a document of one chunk. Its URI is the name of the dataset, a slash, and its id; its metadata
    are its own and `dataset`. Without `vectors` the client embeds. `AmbiguousDatabaseError` for a client over several.
    """
    if client.covers_multiple:
        names = ", ".join(f"'{name}'" for name in client.source_names)
        raise AmbiguousDatabaseError(f"a dataset is stored in one database, and several are covered: {names}.")
    total = len(dataset.passages)
    done = 0
    for batch in _batches(dataset, vectors):
        on_step(Step(label=f"{dataset.name}: storing", done=done, total=total))
        done += len(await client.import_documents(batch))
    on_step(Step(label=f"{dataset.name}: storing", done=done, total=total))
    return done


def _batches(dataset: Dataset, vectors: Vectors | None) -> Iterator[Sequence[DocumentImport]]:
    def documents() -> Iterator[DocumentImport]:
        for row, passage in enumerate(dataset.passages):
            embedding = None if vectors is None else vectors[row].tolist()
            yield DocumentImport(
                uri=key_of(dataset.name, passage.id),
                title=passage.title or None,
                content=passage.content,
                metadata={"dataset": dataset.name, **passage.metadata},
                chunks=[Chunk(content=passage.content, embedding=embedding)],
            )

    waiting = documents()
    while batch := list(islice(waiting, BATCH)):
        yield batch


@dataclass(kw_only=True)
class Populator:
    """Makes the databases of a suite in a workspace, or finds them there."""

    config: AppConfig
    workspace: Workspace
    language: str | None = None
    on_step: OnStep = unseen
    _vectors: dict[str, Vectors] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.engine = engine_of(self.config)
        self.config = for_populating(self.config, language=self.language)

    async def databases(self, suite: Suite) -> tuple[DatabaseRef, ...]:
        """One a dataset, by its name."""
        return tuple([await self._database(dataset.name, [dataset]) for dataset in suite.datasets])

    async def pooled(self, suite: Suite) -> DatabaseRef:
        """One with the passages of all."""
        return await self._database(POOLED, suite.datasets)

    async def _database(self, name: str, datasets: Sequence[Dataset]) -> DatabaseRef:
        embedder: Embedder = self.config.kernel.create("embedder", embedder_name(self.config), self.config)
        try:
            vectors = [await self._embedded(embedder, dataset) for dataset in datasets]
            key = self._key(name, datasets, embedder.identity)
        finally:
            await embedder.close()
        total = sum(len(dataset.passages) for dataset in datasets)
        kept = self.workspace.database(key)
        if kept is not None and await self._is_whole(self._ref(name, kept[0]), total):
            return self._ref(name, kept[0])
        path = self.workspace.new_database(key, next(iter(self.engine.suffixes), ""))
        await self._store(self._ref(name, path), list(zip(datasets, vectors, strict=True)))
        self.workspace.keep(key, path, documents=total)
        return self._ref(name, path)

    async def _embedded(self, embedder: Embedder, dataset: Dataset) -> Vectors:
        if dataset.content_digest not in self._vectors:
            self._vectors[dataset.content_digest] = await self.workspace.vectors(
                dataset, embedder.identity, embedder.embed_documents, on_step=self.on_step
            )
        return self._vectors[dataset.content_digest]

    async def _store(self, ref: DatabaseRef, parts: Sequence[tuple[Dataset, Vectors]]) -> None:
        async with HaikuRAG.over(DatabaseScope((ref,)), self.config, create=True) as client:
            for dataset, vectors in parts:
                await populate(client, dataset, vectors=vectors, on_step=self.on_step)
            if "upkeep" in self.engine.capabilities:
                await client.vacuum()

    async def _is_whole(self, ref: DatabaseRef, documents: int) -> bool:
        try:
            async with HaikuRAG.over(DatabaseScope((ref,)), self.config, read_only=True) as client:
                return await client.count_documents() == documents
        except HaikuRagError:  # gone, damaged, or of another version: it is made anew
            return False

    def _ref(self, name: str, path: Path) -> DatabaseRef:
        engine = self.engine
        return DatabaseRef(name=name, location=str(path), storage=engine.name, searches_many=engine.searches_many)

    def _key(self, name: str, datasets: Sequence[Dataset], identity: EmbeddingIdentity) -> str:
        made_with = self.config.kernel.find("storage", self.engine.name).plugin.provider
        contents = [part for dataset in datasets for part in (dataset.name, dataset.content_digest)]
        return database_key(FORMAT, name, made_with, identity.describe(), language_setting(self.config), *contents)
