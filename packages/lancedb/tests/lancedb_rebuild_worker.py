"""A process of its own for the tests: `lancedb_rebuild_worker.py LOCATION JOB DIMENSION`."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from haiku.rag.client import HaikuRAG, RebuildMode
from haiku.rag.contracts import CandidateQuery, DatabaseRef, OpenMode
from haiku.rag.contracts.storage import Database
from haiku.rag.storage.lancedb import plugin
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage
from haiku.rag.testing import plugin_without_storage, testing_config

DOCUMENTS = 16
PARTS = 3


def client(location: str, dimension: int, **options: Any) -> HaikuRAG:
    """A client over the database with an embedding of this dimension."""
    data = {
        "lancedb": {"databases": {"notes": location}, "read_consistency_interval_seconds": 0},
        "embeddings": {"model": {"provider": "hash", "vector_dim": dimension}},
    }
    return HaikuRAG(config=testing_config(data, plugin, plugin_without_storage), **options)


def text_of(number: int) -> str:
    """A document's text: every part of it names the document, so that a mixture shows."""
    return "\n\n".join(f"document{number} word part{part}" for part in range(PARTS))


async def fill(location: str, dimension: int) -> None:
    """Store the documents."""
    async with client(location, dimension, create=True) as notes:
        for number in range(DOCUMENTS):
            await notes.create_document(text_of(number), uri=f"{number}", title="as it was")


async def rebuild(location: str, dimension: int) -> None:
    """Make the vectors anew with another embedding, telling of every step. Chunks keep their ids for who reads."""
    async with client(location, dimension, any_embedding=True) as notes:
        print("open", flush=True)
        async for step in notes.rebuild(RebuildMode.EMBED_ONLY):
            print(step.outcome, flush=True)
    print("done", flush=True)


async def check(database: Database) -> None:
    """Every document is there, whole, once."""
    documents = await database.list_documents(limit=None, offset=0, filter=None, include_content=True)
    assert [document.uri for document in documents] == [str(number) for number in range(DOCUMENTS)], documents
    assert [document.content for document in documents] == [text_of(number) for number in range(DOCUMENTS)]
    found = await database.search(CandidateQuery(search_type="fts", depth=100, text="word"))
    chunks = await database.chunks_by_id(found["chunk_id"].to_pylist())
    texts = sorted((str(chunk.document_uri), chunk.order, chunk.content) for chunk in chunks)
    assert texts == sorted(
        (f"{number}", part, f"document{number} word part{part}") for number in range(DOCUMENTS) for part in range(PARTS)
    ), texts


async def read(location: str) -> None:
    """Look again and again until the file `stop` is there."""
    storage = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=0.01))
    ref = DatabaseRef(name="notes", location=location, storage="lancedb")
    database = await storage.open(ref, mode=OpenMode.READ, identity=None)
    looks = 0
    while not Path(location).with_name("stop").exists():
        await check(database)
        looks += 1
        if looks == 1:
            print("reading", flush=True)
    assert database.identity is not None
    print(f"{looks} looks, {database.identity.dimension} dimensions", flush=True)
    await database.close()


async def main(location: str, job: str, dimension: str) -> None:
    """Do the job."""
    if job == "read":
        await read(location)
    else:
        await rebuild(location, int(dimension))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
