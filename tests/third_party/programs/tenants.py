"""Opens a tenant's database, which no configuration lists, sound and then damaged: prints what comes of it."""

import json
import sys
from pathlib import Path

import anyio
from stores import configuration

from haiku.rag.client import DatabaseScope, HaikuRAG
from haiku.rag.errors import HaikuRagError


async def main(file: Path) -> None:
    """Write, read, damage, read."""
    config = configuration(file, acme_decider={"root": str(file)})
    scope = DatabaseScope.resolve(config, database_name="tenant-7")
    async with HaikuRAG.over(scope, config, create=True) as client:
        await client.create_document("The seventh tenant keeps bees.")
        sources = [hit.source for hit in await client.search("bees")]
    await anyio.Path(file).write_bytes(b"this is no database" * 100)
    try:
        async with HaikuRAG.over(scope, config, read_only=True) as client:
            await client.search("bees")
    except HaikuRagError as error:
        problem = {"type": type(error).__name__, "text": str(error), "chain": [error.__cause__, error.__context__]}
    print(json.dumps({"sources": sources, "problem": problem, "configured": DatabaseScope.resolve(config).names}))


anyio.run(main, Path(sys.argv[1]) / "tenants.sqlite")
