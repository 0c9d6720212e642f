"""A process of its own for the vacuum's tests: `lancedb_vacuum_worker.py JOB LOCATION [NUMBER]`."""

import asyncio
import hashlib
import json
import sys
from pathlib import Path
from uuid import uuid4

import numpy as np

from haiku.rag.config.models import StorageConfig
from haiku.rag.contracts import DatabaseRef, DocumentWrite, OpenMode
from haiku.rag.models import Chunk, EmbeddingIdentity
from haiku.rag.storage.lancedb.compaction import shape_of
from haiku.rag.storage.lancedb.maintained import MaintainedDatabase
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage

PAGES = 8
IDENTITY = EmbeddingIdentity(provider="test", model="seeded", dimension=8)


def document(uri: str, seed: int) -> DocumentWrite:
    """A document of a few pages with images of 100 to 400 kB."""
    random = np.random.default_rng(seed)
    images = {page: random.bytes(int(random.integers(100, 400)) << 10) for page in range(1, PAGES + 1)}
    chunk = Chunk(id=str(uuid4()), content=f"text of {uri}", order=0)
    vectors = random.normal(size=(1, 8)).astype(np.float32)
    return DocumentWrite(uri=uri, content=uri, chunks=[chunk], vectors=vectors, page_images=images)


def memory(key: str) -> int:
    """A figure of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(key))


async def fill(database: MaintainedDatabase, megabytes: int) -> dict[str, object]:
    """Documents until their images take about so much, one a commit."""
    for number in range(await database.count_documents(filter=None), megabytes // 2):
        await database.write([document(f"{number}.pdf", number)])
    return {}


async def churn(database: MaintainedDatabase, _: int) -> dict[str, object]:
    """Write two documents again, and check."""
    for number in range(2):
        await database.write([document(f"{number}.pdf", number)])
    return await check(database, 0)


async def delete(database: MaintainedDatabase, every: int) -> dict[str, object]:
    """Delete one document of so many, and its parts at once."""
    for stored in (await database.list_documents(limit=None, offset=0, filter=None, include_content=False))[::every]:
        await database.delete(stored.id)
    database._upkeep._garbage._grace = -1.0
    await database._upkeep._garbage.remove(await database._upkeep._garbage.find())
    return {}


async def vacuum(database: MaintainedDatabase, _: int) -> dict[str, object]:
    """Vacuum, and say what it took."""
    pictures = database._live.tables.pictures
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    base = memory("VmRSS")
    report = await database.vacuum(retention_seconds=None, dry_run=False)
    shape = await shape_of(pictures)
    return {
        "fragments": shape.fragments,
        "rows": shape.rows,
        "peak_bytes": memory("VmHWM"),
        "grown_bytes": memory("VmHWM") - base,
        "failed": [step.name for step in report.failed],
    }


async def check(database: MaintainedDatabase, _: int) -> dict[str, object]:
    """Read every image, and give what they hold."""
    digest, pictures = hashlib.sha256(), 0
    for stored in await database.list_documents(limit=None, offset=0, filter=None, include_content=True):
        assert stored.content == stored.uri
        for page in range(1, PAGES + 1):
            image = await database.picture(stored.id, f"page/{page}")
            assert image is not None, (stored.uri, page)
            pictures += 1
            digest.update(image)
    return {"pictures": pictures, "digest": digest.hexdigest()}


JOBS = {"fill": fill, "churn": churn, "delete": delete, "vacuum": vacuum, "check": check}


async def main(job: str, location: str, number: int) -> None:
    """Open the database and do the job."""
    target = number if job == "vacuum" else 256 << 20
    storage = LanceDBStorage(
        LanceDBSettings(), StorageConfig(auto_vacuum=False, compaction_target_bytes=max(target, 1 << 20))
    )
    ref = DatabaseRef(name="notes", location=location, storage="lancedb")
    database = await storage.open(ref, mode=OpenMode.CREATE, identity=IDENTITY)
    figures = await JOBS[job](database, number)
    await database.close()
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0))
