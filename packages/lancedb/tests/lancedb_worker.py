"""A process of its own for the tests: `lancedb_worker.py LOCATION JOB NAME COUNT`."""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from uuid import uuid4

import numpy as np

from haiku.rag.contracts import CandidateQuery, Database, DatabaseRef, DocumentWrite, OpenMode
from haiku.rag.models import Chunk, DocumentItem
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage

CHUNKS = 3


def document(uri: str, author: str) -> DocumentWrite:
    """Every part of it names its author, so that a mixture shows."""
    chunks = [Chunk(id=str(uuid4()), content=f"{author} {uri} part {n}", order=n) for n in range(CHUNKS)]
    items = [DocumentItem(ref=f"#/{n}", label="paragraph", text=author) for n in range(CHUNKS)]
    vectors = np.random.default_rng(len(uri)).normal(size=(CHUNKS, 8)).astype(np.float32)
    return DocumentWrite(
        uri=uri,
        title=author,
        content=author,
        items=items,
        chunks=chunks,
        vectors=vectors,
        pictures={"p": author.encode()},
    )


async def write(database: Database, author: str, count: int) -> None:
    """Write the same URIs as every other writer, in an order and in batches of its own."""
    numbers = np.random.default_rng(sum(author.encode())).permutation(count)
    for batch in np.array_split(numbers, 5):
        await database.write([document(f"shared-{number}", author) for number in batch])


async def rewrite(database: Database, author: str, count: int) -> None:
    """Rewrite one document until killed, telling of every commit."""
    for turn in range(count):
        await database.write([document("rewritten", f"{author}{turn}")])
        sys.stdout.write("written\n")
        sys.stdout.flush()


async def check(database: Database) -> None:
    """Read everything as a reader would, and fail on a document that is not whole."""
    documents = await database.list_documents(limit=None, offset=0, filter=None, include_content=False)
    query = CandidateQuery(search_type="vector", depth=10_000, vector=np.ones(8, np.float32))
    found = await database.search(query)
    counts = Counter(found["document_id"].to_pylist())
    assert set(counts.values()) == {CHUNKS}, counts
    assert len(counts) >= len(documents), (len(counts), len(documents))
    authors: dict[str | None, set[str]] = {}
    for chunk in await database.chunks_by_id(found["chunk_id"].to_pylist()):
        authors.setdefault(chunk.document_id, set()).add(chunk.content.split()[0])
    assert all(len(names) == 1 for names in authors.values()), authors


async def read(databases: list[Database], stop: Path) -> None:
    """Check until told to stop."""
    checks = 0
    while not stop.exists():
        for database in databases:
            await check(database)
        checks += 1
        await asyncio.sleep(0.05)
    sys.stdout.write(f"checked {checks}\n")


def ready() -> None:
    """Tell that the imports are done and the database is open."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()


async def opened(location: str, mode: OpenMode, **settings: float) -> Database:
    """The database, through an engine of its own."""
    storage = LanceDBStorage(LanceDBSettings.model_validate({"read_consistency_interval_seconds": 0.2, **settings}))
    ref = DatabaseRef(name="notes", location=location, storage="lancedb")
    return await storage.open(ref, mode=mode, identity=None)


async def main(location: str, job: str, name: str, count: int) -> None:
    """Open the database and do the job."""
    if job == "read":
        readers = [await opened(location, OpenMode.READ, vector_memory_mb=size) for size in (0, 64)]
        ready()
        await read(readers, Path(name))
        return
    database = await opened(location, OpenMode.WRITE)
    ready()
    go = Path(location).parent / "go"
    while not go.exists():  # noqa: ASYNC110 - a test's signal between processes
        await asyncio.sleep(0.01)
    await (write if job == "write" else rewrite)(database, name, count)
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
