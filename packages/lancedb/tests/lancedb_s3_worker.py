"""A process of its own for the tests: `lancedb_s3_worker.py LOCATION ENDPOINT JOB AUTHOR COUNT`."""

import asyncio
import runpy
import sys
from pathlib import Path

from haiku.rag.contracts import DatabaseRef, OpenMode
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage

HERE = Path(__file__).parent
IDENTITY = EmbeddingIdentity(provider="test", model="seeded", dimension=8)


async def main(location: str, endpoint: str, job: str, author: str, count: int) -> None:
    """Write documents that other writers write, too, or only open the database, for at most a second."""
    keys = {"aws_access_key_id": "AKIATHEKEYID", "aws_secret_access_key": "the-secret-key", "aws_region": "us-east-1"}
    options = {**keys, "aws_endpoint": endpoint, "allow_http": "true"}
    storage = LanceDBStorage(LanceDBSettings.model_validate({"storage_options": options}))
    ref = DatabaseRef(name="notes", location=location, storage="lancedb")
    if job == "wait":
        try:
            await asyncio.wait_for(storage.open(ref, mode=OpenMode.READ, identity=None), 1.0)
        except TimeoutError:
            sys.stdout.write("given up\n")
        return
    database = await storage.open(ref, mode=OpenMode.CREATE, identity=IDENTITY)
    worker = runpy.run_path(str(HERE / "lancedb_worker.py"))
    await worker["write"](database, author, count)
    await worker["check"](database)
    await database.close()


if __name__ == "__main__":
    where, endpoint, job, author, count = sys.argv[1:]
    asyncio.run(main(where, endpoint, job, author, int(count)))
