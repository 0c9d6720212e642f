"""Searches three SQLite databases as one: prints the hits, and how the engine was asked for them."""

import json
import sys
from pathlib import Path

import anyio
from stores import configuration, counted, fill

from haiku.rag.client import HaikuRAG


async def main(folder: Path, search_type: str) -> None:
    """Fill, search, print."""
    config = configuration(folder / "store.sqlite", search={"fusion": "acme-sum"})
    await fill(config)
    calls = counted()
    async with HaikuRAG(config=config, read_only=True) as client:
        results = await client.search("stone bridge", search_type=search_type)  # type: ignore[arg-type]  # an argument
    found = {"hits": [[hit.source, hit.content] for hit in results], "calls": calls, "fusion": results.report.fusion}
    print(json.dumps(found))


anyio.run(main, Path(sys.argv[1]), sys.argv[2])
