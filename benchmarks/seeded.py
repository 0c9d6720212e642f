"""Seeded databases for the benchmarks: words drawn from a long-tailed vocabulary, vectors around centres or not."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import perf_counter

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
KINDS = ("clustered", "isotropic")
LARGE_CHUNKS = 100_000
HALF_DOCUMENTS = 60_000
DOCUMENTS_AT_ONCE = 1_000


class GivenVectors:
    """An embedder that hands out seeded vectors around centres: a query's vector costs nothing."""

    kind = "clustered"

    def __init__(self, config: object) -> None:
        self._centres = centres()

    identity = EmbeddingIdentity(provider="given", model="seeded", dimension=DIMENSION)
    modalities = frozenset({"text"})
    max_tokens = 512

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words."""
        return [len(text.split()) for text in texts]

    async def embed_query(self, query: str | bytes) -> NDArray[np.float32]:
        """A vector that the query's letters decide."""
        random = np.random.default_rng(zlib.crc32(query.encode() if isinstance(query, str) else query))
        vector: NDArray[np.float32] = vectors(self.kind, random, 1, self._centres)[0]
        return vector

    async def embed_documents(self, contents: Sequence[str | bytes]) -> NDArray[np.float32]:
        """One vector a text."""
        return np.stack([await self.embed_query(content) for content in contents])

    async def close(self) -> None:
        """Nothing is held."""


class GivenAnywhere(GivenVectors):
    """The same without any structure among the vectors."""

    kind = "isotropic"


@hookimpl
def haiku_rag_register_embedder() -> Iterable[EmbedderRecord]:
    """The embedders of this module."""
    yield EmbedderRecord(name="clustered", summary="Seeded vectors", factory=f"{__name__}:GivenVectors")
    yield EmbedderRecord(name="isotropic", summary="Seeded vectors", factory=f"{__name__}:GivenAnywhere")


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


def vectors(
    kind: str, random: np.random.Generator, count: int, around: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Unit vectors around the centres, or not."""
    if kind == "clustered":
        return near(centres() if around is None else around, random, count)
    return unit(random.standard_normal((count, DIMENSION)))


def words(random: np.random.Generator, count: int) -> str:
    """Words whose frequencies fall as in running text (Zipf)."""
    return " ".join(f"w{rank % VOCABULARY}" for rank in random.zipf(1.2, count))


def config(root: Path, names: Sequence[str], kind: str = "clustered") -> AppConfig:
    """The configuration over the named databases, with the seeded embedder of their kind."""
    module = sys.modules[__name__]
    own = Plugin(
        name="seeded", distribution="benchmarks", version="0", module=__name__, target=module, records=collect(module)
    )
    kernel = Kernel([*load_plugins(third_party=False), own])
    data = {
        "embeddings": {"model": {"provider": kind}},
        "lancedb": {"databases": {name: str(root / f"{name}.lancedb") for name in names}},
    }
    return AppConfig.model_validate(data, context={"kernel": kernel})


def names(kind: str) -> list[str]:
    """The names of the many databases."""
    return [f"{kind}-{number:02d}" for number in range(DATABASES)]


async def build_many(root: Path, kind: str) -> None:
    """Make those of the many databases that are not there yet."""
    for number, name in enumerate(names(kind)):
        await build(root, name, kind, chunks=CHUNKS, seed=SEED + number)


async def build(
    root: Path, name: str, kind: str, *, chunks: int, seed: int = SEED, a_document: int = CHUNKS_A_DOCUMENT
) -> float | None:
    """Make a database that is not there yet; the seconds that storing and closing took, None where it is there."""
    done = root / f"{name}.done"
    if done.exists():
        return None
    random = np.random.default_rng(seed)
    made = vectors(kind, random, chunks)
    spent = 0.0
    client = HaikuRAG(config=config(root, [name], kind), create=True)
    await client.__aenter__()
    for start in range(0, chunks, DOCUMENTS_AT_ONCE * a_document):
        firsts = range(start, min(chunks, start + DOCUMENTS_AT_ONCE * a_document), a_document)
        documents = [document(name, first, random, made[first : first + a_document]) for first in firsts]
        began = perf_counter()
        await client.import_documents(documents)
        spent += perf_counter() - began
    began = perf_counter()
    await client.__aexit__(None, None, None)
    done.touch()
    return spent + perf_counter() - began


def document(name: str, start: int, random: np.random.Generator, vectors: NDArray[np.float32]) -> DocumentImport:
    """A document with a chunk for each vector; its title says whether it is an even one."""
    chunks = [Chunk(content=words(random, WORDS_A_CHUNK), embedding=vector.tolist()) for vector in vectors]
    title = f"{'odd' if start // len(vectors) % 2 else 'even'} {start}"
    return DocumentImport(uri=f"bench:{name}/{start}", title=title, content="", chunks=chunks)


def queries(count: int) -> list[str]:
    """Distinct queries of four words."""
    random = np.random.default_rng(SEED - 1)
    return [f"{words(random, 4)} q{number}" for number in range(count)]
