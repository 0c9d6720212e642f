"""Seeded databases for the benchmarks: words drawn from a long-tailed vocabulary, vectors around cluster centres."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from haiku.rag.client import DocumentImport, HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.models import Chunk, EmbeddingIdentity
from haiku.rag.plugins import EmbedderRecord, hookimpl
from haiku.rag.plugins.kernel import Kernel
from haiku.rag.plugins.loading import Plugin, collect, load_plugins

SEED = 20261
DIMENSION = 384
DATABASES = 25
CHUNKS = 4_000
CHUNKS_A_DOCUMENT = 10
WORDS_A_CHUNK = 80
VOCABULARY = 20_000


class GivenVectors:
    """An embedder that hands out seeded vectors: a query's vector costs nothing."""

    def __init__(self, config: object) -> None:
        self._centres = centres()

    identity = EmbeddingIdentity(provider="given", model="seeded", dimension=DIMENSION)
    modalities = frozenset({"text"})
    max_tokens = 512

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words."""
        return [len(text.split()) for text in texts]

    async def embed_query(self, query: str | bytes) -> NDArray[np.float32]:
        """A vector that the query's length and letters decide."""
        seed = sum(query.encode() if isinstance(query, str) else query)
        vector: NDArray[np.float32] = near(self._centres, np.random.default_rng(seed), 1)[0]
        return vector

    async def embed_documents(self, contents: Sequence[str | bytes]) -> NDArray[np.float32]:
        """One vector a text."""
        return np.stack([await self.embed_query(content) for content in contents])

    async def close(self) -> None:
        """Nothing is held."""


@hookimpl
def haiku_rag_register_embedder() -> Iterable[EmbedderRecord]:
    """The embedder of this module."""
    yield EmbedderRecord(name="given", summary="Seeded vectors", factory=f"{__name__}:GivenVectors")


def centres() -> NDArray[np.float32]:
    """Sixty-four cluster centres."""
    return unit(np.random.default_rng(SEED).standard_normal((64, DIMENSION)))


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    """The vectors at length one."""
    unit_length: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit_length


def near(centre: NDArray[np.float32], random: np.random.Generator, count: int) -> NDArray[np.float32]:
    """Vectors around centres drawn at random."""
    chosen = centre[random.integers(0, len(centre), count)]
    return unit(chosen + 0.08 * random.standard_normal((count, DIMENSION)))


def words(random: np.random.Generator, count: int) -> str:
    """Words whose frequencies fall as in running text (Zipf)."""
    return " ".join(f"w{rank % VOCABULARY}" for rank in random.zipf(1.2, count))


def config(root: Path, names: Sequence[str]) -> AppConfig:
    """The configuration over the named databases, with the seeded embedder."""
    module = sys.modules[__name__]
    own = Plugin(
        name="seeded", distribution="benchmarks", version="0", module=__name__, target=module, records=collect(module)
    )
    kernel = Kernel([*load_plugins(third_party=False), own])
    data = {
        "embeddings": {"model": {"provider": "given"}},
        "lancedb": {"databases": {name: str(root / f"{name}.lancedb") for name in names}},
    }
    return AppConfig.model_validate(data, context={"kernel": kernel})


def names() -> list[str]:
    """The databases' names."""
    return [f"base-{number:02d}" for number in range(DATABASES)]


async def build(root: Path) -> None:
    """Make what is not there yet."""
    for number, name in enumerate(names()):
        done = root / f"{name}.done"
        if done.exists():
            continue
        random = np.random.default_rng(SEED + number)
        vectors = near(centres(), random, CHUNKS)
        async with HaikuRAG(config=config(root, [name]), create=True) as client:
            await client.import_documents(
                [document(name, start, random, vectors) for start in range(0, CHUNKS, CHUNKS_A_DOCUMENT)]
            )
        done.touch()


def document(name: str, start: int, random: np.random.Generator, vectors: NDArray[np.float32]) -> DocumentImport:
    """Ten chunks with their vectors."""
    chunks = [
        Chunk(content=words(random, WORDS_A_CHUNK), embedding=vectors[index].tolist())
        for index in range(start, start + CHUNKS_A_DOCUMENT)
    ]
    return DocumentImport(uri=f"bench:{name}/{start}", title=f"{name} {start}", content="", chunks=chunks)


def queries(count: int) -> list[str]:
    """Distinct queries of four words."""
    random = np.random.default_rng(SEED - 1)
    return [f"{words(random, 4)} q{number}" for number in range(count)]
