"""Databases in memory that a contract test fills, slows, breaks and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio
import numpy as np
from numpy.typing import NDArray

from haiku.rag.client import HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.contracts import DatabaseRef, DocumentWrite, OpenMode
from haiku.rag.models import Chunk, EmbeddingIdentity
from haiku.rag.testing import (
    HashEmbedder,
    MemoryServer,
    MemoryStorage,
    embedding_calls,
    memory_server,
    testing_config,
)
from haiku.rag.testing import plugin as memory_plugin

QUERY = "harbour pilots at dawn"
WORDS = "words"
DIMENSION = 64


class World:
    """A server of databases under `memory://NAME`, and clients over them.

    `near` writes passages at chosen cosines to `QUERY`; `text` writes plain texts through the embedder.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.server: MemoryServer = memory_server(name)
        self.use_model(f"{WORDS}-{name}")
        self.gates: dict[tuple[str, str], anyio.Event] = {}
        self.reached: dict[tuple[str, str], anyio.Event] = {}
        self.places: dict[str, str] = {}
        self._visit = self.server.visit
        self.server.visit = self._gated_visit  # type: ignore[method-assign, assignment]  # events time a test, not clocks

    def use_model(self, name: str, *, dimension: int = DIMENSION) -> None:
        """From now on the embedding model has this name; one that begins with `image` reads pictures too."""
        self.model = name
        self.embedder = HashEmbedder(name=name, dimension=dimension)
        self.embedded = embedding_calls(name)

    @property
    def identity(self) -> EmbeddingIdentity:
        return self.embedder.identity

    def config(
        self, databases: Sequence[str] | Mapping[str, Any], *plugins: object, many: bool = False, **sections: Any
    ) -> AppConfig:
        placed = (
            databases if isinstance(databases, Mapping) else {database: self.place(database) for database in databases}
        )
        data = {
            "memory_many" if many else "memory": {"server": self.name, "databases": dict(placed)},
            "embeddings": {"model": {"provider": "hash", "name": self.model}},
            **sections,
        }
        return testing_config(data, memory_plugin, *plugins)

    def client(self, *databases: str, read_only: bool = True, **sections: Any) -> HaikuRAG:
        return HaikuRAG(config=self.config(databases, **sections), read_only=read_only)

    async def text(self, database: str, **texts: str) -> None:
        """Documents of one passage each; the keyword is title, chunk id and, with `doc-` before it, the id."""
        vectors = await self.embedder.embed_documents(list(texts.values()))
        await self.put(database, texts, vectors)

    async def near(self, database: str, **cosines: float) -> None:
        """Documents whose passages have these cosines to `QUERY`, and no word of it."""
        await self._near(database, cosines)

    async def pictured(self, database: str, pictures: Mapping[str, bytes], **cosines: float) -> None:
        """The same, of passages that are made of the pictures `pic` and `none`; the bytes of those given are stored."""
        parts = {"labels": ["picture"], "doc_item_refs": ["pic", "none"]}
        await self._near(database, cosines, parts=parts, pictures=pictures)

    async def _near(self, database: str, cosines: Mapping[str, float], **more: Any) -> None:
        texts = {name: f"passage {name}" for name in cosines}
        await self.put(database, texts, await self.vectors_at(list(cosines.values())), **more)

    async def vectors_at(self, cosines: Sequence[float]) -> NDArray[np.float32]:
        """Vectors with these cosines to `QUERY`, a row each."""
        query = (await self.embedder.embed_query(QUERY)).astype(np.float64)
        across = np.zeros_like(query)
        across[np.argmin(np.abs(query))] = 1.0
        across -= (across @ query) * query
        across /= np.linalg.norm(across)
        rows = [value * query + np.sqrt(1 - value**2) * across for value in cosines]
        return np.array(rows, dtype=np.float32).reshape(-1, len(query))

    async def put(
        self,
        database: str,
        texts: Mapping[str, str],
        vectors: NDArray[np.float32],
        *,
        parts: Mapping[str, Any] = {},
        pictures: Mapping[str, bytes] = {},
    ) -> None:
        """Documents of one passage each, with their vectors; not counted as calls."""
        writes = [
            DocumentWrite(
                id=f"doc-{name}",
                uri=f"file:///{name}.md",
                title=name,
                content=text,
                chunks=[Chunk(id=name, content=text, **parts)],
                vectors=vector[None, :],
                pictures=pictures,
            )
            for (name, text), vector in zip(texts.items(), vectors, strict=True)
        ]
        await self.store(database, writes)

    async def store(self, database: str, writes: Sequence[DocumentWrite]) -> None:
        """Documents as they are given; not counted as calls."""
        ref = DatabaseRef(name=database, location=self.place(database), storage="memory")
        opened = await MemoryStorage(server=self.server).open(ref, mode=OpenMode.CREATE, identity=self.identity)
        await opened.write(writes)
        await opened.close()
        self.server.calls.clear()
        self.embedded.clear()
        self.reached.clear()

    def empty(self, *databases: str, identity: EmbeddingIdentity | None = None) -> None:
        for database in databases:
            self.server.create(self.place(database), identity or self.identity)

    def other(self, **changes: Any) -> EmbeddingIdentity:
        """The identity with something changed."""
        return replace(self.identity, **changes)

    def place(self, database: str) -> str:
        """Where the database is."""
        return self.places.get(database, f"memory://{database}")

    def hold(self, database: str, operation: str) -> anyio.Event:
        """Make the operation wait until the event that is returned is set."""
        return self.gates.setdefault((self.place(database), operation), anyio.Event())

    def entered(self, database: str, operation: str) -> anyio.Event:
        """The event that says that the operation has begun."""
        return self.reached.setdefault((self.place(database), operation), anyio.Event())

    def calls(self, database: str, operation: str) -> int:
        return self.server.calls[self.place(database), operation]

    def total(self, operation: str) -> int:
        return sum(count for (_, called), count in self.server.calls.items() if called == operation)

    async def _gated_visit(self, place: str, operation: str) -> None:
        self.reached.setdefault((place, operation), anyio.Event()).set()
        if (place, operation) in self.gates:
            self.server.calls[place, operation] += 1
            await self.gates[place, operation].wait()
            self.server.calls[place, operation] -= 1
        await self._visit(place, operation)


def ids(results: Iterable[Any]) -> list[tuple[str, str]]:
    """Source and chunk id of each hit."""
    return [(result.source, result.chunk_id) for result in results]
