"""Fixtures: databases in temporary folders, and documents with seeded vectors."""

import asyncio
import hashlib
import os
import runpy
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from lancedb.query import AsyncQueryBase

from haiku.rag.contracts import DatabaseRef, DocumentWrite, OpenMode
from haiku.rag.models import Chunk, DocumentItem, EmbeddingIdentity
from haiku.rag.storage.lancedb.database import LanceDBDatabase
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage

DIMENSION = 8
IDENTITY = EmbeddingIdentity(provider="test", model="seeded", dimension=DIMENSION, document_prefix="doc: ")

Open = Callable[..., Awaitable[LanceDBDatabase]]
Make = Callable[..., DocumentWrite]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def own_task_for_each_fetch() -> Iterator[None]:
    """Let every fetch run in a task of its own.

    On Python 3.11 line tracing loses its place where an extension's asynchronous iterator ends, and the caller's next
    lines count as not run; a task confines that. It changes nothing else.
    """
    fetch = AsyncQueryBase.to_arrow

    async def in_a_task(query: AsyncQueryBase, timeout: timedelta | None = None) -> pa.Table:
        return await asyncio.ensure_future(fetch(query, timeout))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AsyncQueryBase, "to_arrow", in_a_task)
        yield


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return tmp_path / "db"


@pytest.fixture
def make() -> Make:
    """Makes a document: one chunk a text, with vectors that follow from the texts."""

    def document(uri: str | None = "a.md", *texts: str, **fields: Any) -> DocumentWrite:
        texts = texts or ("alpha",)
        vectors = fields.pop("vectors", None)
        headings: Sequence[str] = fields.pop("headings", ())
        chunks = [
            Chunk(id=str(uuid4()), content=text, order=order, headings=list(headings), page_numbers=[1])
            for order, text in enumerate(texts)
        ]
        items = [
            DocumentItem(ref=f"#/{number}", label="paragraph", text=text, page=1, box=(1.0, 2.0, 3.0, 4.5))
            for number, text in enumerate(texts)
        ]
        fields = {"content": "\n".join(texts), "items": items, **fields}
        given = np.stack([vector_of(text) for text in texts]) if vectors is None else np.asarray(vectors, np.float32)
        return DocumentWrite(uri=uri, chunks=chunks, vectors=given, **fields)

    return document


def vector_of(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)


@pytest.fixture
def vector() -> Callable[[str], np.ndarray]:
    """The vector that a chunk with this text gets."""
    return vector_of


@pytest.fixture
async def storage() -> AsyncIterator[LanceDBStorage]:
    """An engine without read-consistency interval: every read looks for other writers' commits."""
    engine = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=0))
    yield engine
    await engine.close()


@pytest.fixture
async def open_database(storage: LanceDBStorage, location: Path) -> AsyncIterator[Open]:
    """Opens databases by name, at one location unless told another, and closes them in the end."""
    opened: list[LanceDBDatabase] = []

    async def open_one(
        path: Path | str = location,
        *,
        mode: OpenMode = OpenMode.CREATE,
        identity: EmbeddingIdentity | None = IDENTITY,
        engine: LanceDBStorage = storage,
        **fields: Any,
    ) -> LanceDBDatabase:
        ref = DatabaseRef(**{"name": "notes", "location": str(path), "storage": "lancedb", **fields})
        database = await engine.open(ref, mode=mode, identity=identity)
        opened.append(database)
        return database

    yield open_one
    for database in opened:
        await database.close()


@pytest.fixture
async def database(open_database: Open) -> LanceDBDatabase:
    return await open_database()


@pytest.fixture
def tree() -> Callable[[Path], dict[str, tuple[int, str]]]:
    """Every path below a folder with its modification time and the hash of its bytes."""

    def snapshot(root: Path) -> dict[str, tuple[int, str]]:
        return {
            str(path.relative_to(root)): (
                path.stat().st_mtime_ns,
                hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            )
            for path in sorted(root.rglob("*"))
        }

    return snapshot


@pytest.fixture
def worker_environment() -> dict[str, str]:
    """The environment in which a child process imports what this one does, and is not measured itself."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    return {**own, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


@pytest.fixture(scope="session")
def s3_module() -> dict[str, Any]:
    """What `s3_server.py` defines: loaded by the tests that need it, for its imports take seconds."""
    return runpy.run_path(str(Path(__file__).with_name("s3_server.py")))


@pytest.fixture(scope="session")
def s3_server(s3_module: dict[str, Any]) -> Iterator[Any]:
    """An S3 server that does as it should."""
    server = s3_module["Server"]()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def careless_server(s3_module: dict[str, Any]) -> Iterator[Any]:
    """An S3 server that ignores the condition of conditional writes."""
    server = s3_module["Server"](careless=True)
    yield server
    server.stop()


@pytest.fixture
def bucket(s3_server: Any) -> Iterator[Any]:
    """The servers' bucket, which is one: empty at first."""
    s3_server.bucket.empty()
    yield s3_server.bucket
    s3_server.bucket.empty()


@pytest.fixture
def engine_of(s3_module: dict[str, Any], bucket: Any) -> Callable[..., LanceDBStorage]:
    """Makes an engine for the S3 server at an endpoint."""

    def engine(endpoint: str, **options: str) -> LanceDBStorage:
        section = {"storage_options": {**s3_module["options"](endpoint), **options}}
        return LanceDBStorage(LanceDBSettings.model_validate({**section, "read_consistency_interval_seconds": 0}))

    return engine


@pytest.fixture
def s3_engine(s3_server: Any, engine_of: Callable[..., LanceDBStorage]) -> LanceDBStorage:
    """An engine for the S3 server that does as it should."""
    return engine_of(s3_server.endpoint)
