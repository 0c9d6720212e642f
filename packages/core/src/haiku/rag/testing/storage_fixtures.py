"""What the clauses of the storage contract share: the engine, databases, and made-up documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
import pytest
from numpy.typing import NDArray

from haiku.rag.contracts.filters import Filter
from haiku.rag.contracts.maintenance import Capability
from haiku.rag.contracts.storage import CandidateQuery, Database, DatabaseRef, DocumentWrite, OpenMode, Storage
from haiku.rag.models import Chunk, EmbeddingIdentity

DIMENSION = 8
IDENTITY = EmbeddingIdentity(provider="hash", model="words", dimension=DIMENSION)

MakeRef = Callable[[str], DatabaseRef]
OpenDatabase = Callable[..., Awaitable[Database]]
MakeOutdated = Callable[[str], Awaitable[DatabaseRef]]


class StorageFixtures:
    """The fixtures; `storage` has to be overridden."""

    pytestmark = pytest.mark.anyio
    storage_name: ClassVar[str] = "storage"
    suffix: ClassVar[str] = ""
    text_filter: ClassVar[str | None] = None
    searches_many: ClassVar[bool] = False
    capabilities: ClassVar[frozenset[str]] = frozenset()

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The event loop of these tests."""
        return "asyncio"

    @pytest.fixture
    def storage(self) -> Storage:
        """The engine under test."""
        raise NotImplementedError("override the fixture 'storage'")  # pragma: no cover - a subclass overrides it

    @pytest.fixture
    def make_ref(self, tmp_path: Path) -> MakeRef:
        """From a name to a database's place: the same place for the same name."""
        return lambda name: DatabaseRef(
            name=name,
            location=str(tmp_path / f"{name}{self.suffix}"),
            storage=self.storage_name,
            searches_many=self.searches_many,
        )

    @pytest.fixture
    def identity(self) -> EmbeddingIdentity:
        """The embedding of the databases."""
        return IDENTITY

    @pytest.fixture
    def staleness_s(self) -> float:
        """So many seconds after a commit, a database that was opened before shows it."""
        return 0.0

    @pytest.fixture
    def make_outdated(self) -> MakeOutdated | None:
        """Makes a database of an older schema that holds documents; None where there has been no other schema."""
        return None

    def needs(self, *capabilities: Capability) -> None:
        """Skip the test of an engine that does not have them all."""
        lacking = sorted({*capabilities} - self.capabilities)
        if lacking:
            pytest.skip(f"the engine does not offer {', '.join(lacking)}")

    @pytest.fixture
    async def open_database(
        self, storage: Storage, make_ref: MakeRef, identity: EmbeddingIdentity
    ) -> AsyncIterator[OpenDatabase]:
        """Opens databases by name, by default creating them; closes them, then the engine, after the test."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(storage.close)

            async def open_database(
                name: str = "one", mode: OpenMode = OpenMode.CREATE, tag: str | None = None
            ) -> Database:
                database = await storage.open(replace(make_ref(name), tag=tag), mode=mode, identity=identity)
                stack.push_async_callback(database.close)
                return database

            yield open_database


def vectors_of(count: int, seed: int = 7) -> NDArray[np.float32]:
    """Seeded vectors of very different lengths."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(count, DIMENSION)) * generator.uniform(0.1, 20, size=(count, 1))
    return rows.astype(np.float32)


def document(
    *texts: str,
    uri: str | None = None,
    title: str | None = None,
    id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    vectors: NDArray[np.float32] | None = None,
    **parts: Any,
) -> DocumentWrite:
    """A document with a chunk a text."""
    chunks = [Chunk(id=str(uuid4()), content=text, order=order) for order, text in enumerate(texts)]
    return DocumentWrite(
        id=id,
        uri=uri,
        title=title,
        metadata=metadata or {},
        content="\n\n".join(texts),
        content_hash="hash of " + " ".join(texts)[:40],
        chunks=chunks,
        vectors=vectors_of(len(texts), seed=sum(map(len, texts))) if vectors is None else vectors,
        **parts,
    )


def ids_of(write: DocumentWrite) -> list[str]:
    """The chunk ids of a document."""
    return [str(chunk.id) for chunk in write.chunks]


def vector_query(vector: Sequence[float] | NDArray[np.float32], *, depth: int = 10, **more: Any) -> CandidateQuery:
    """A vector search."""
    return CandidateQuery(search_type="vector", depth=depth, vector=np.asarray(vector, dtype=np.float32), **more)


def text_query(text: str, *, depth: int = 10, **more: Any) -> CandidateQuery:
    """A full-text search."""
    return CandidateQuery(search_type="fts", depth=depth, text=text, **more)


def hybrid_query(
    text: str, vector: Sequence[float] | NDArray[np.float32], *, depth: int = 10, **more: Any
) -> CandidateQuery:
    """A hybrid search."""
    found = np.asarray(vector, dtype=np.float32)
    return CandidateQuery(search_type="hybrid", depth=depth, text=text, vector=found, **more)


async def titles(database: Database, filter: str | Filter | None) -> list[str | None]:
    """The titles that a filter selects, sorted; what is counted is the same."""
    found = await database.list_documents(limit=None, offset=0, filter=filter, include_content=False)
    assert await database.count_documents(filter=filter) == len(found)
    return sorted((entry.title for entry in found), key=str)


async def found_in_every_way(database: Database, text: str) -> set[str]:
    """The chunks that a search of any kind for the text finds."""
    vector = np.ones(DIMENSION, dtype=np.float32)
    queries = [text_query(text, depth=200), vector_query(vector, depth=200), hybrid_query(text, vector, depth=200)]
    return {chunk for query in queries for chunk in (await database.search(query))["chunk_id"].to_pylist()}
