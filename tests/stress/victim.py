"""A process that changes one database until it is killed: `victim.py LOCATION MODEL SEED JOB`.

It waits for a line on its standard input, opens the database, and then tells of every operation before it begins and
after it is done, as JSON lines. From these the parent knows what state the database may be in: a mapping of URIs to
tokens. Every part of a document carries its token.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from typing import Any

from haiku.rag.client import DocumentImport, HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.errors import HaikuRagError
from haiku.rag.models import Chunk, DocumentItem, RebuildMode
from haiku.rag.storage.lancedb import plugin as lancedb_plugin
from haiku.rag.testing import plugin_without_storage, testing_config

PARTS = 3
NAME = "notes"
SHARED = 50


def config(location: str, model: str, **settings: Any) -> AppConfig:
    """One database in the engine under test, and the hashing embedder under a model's name."""
    return testing_config(
        {
            "lancedb": {"databases": {NAME: location}, **settings},
            "embeddings": {"model": {"provider": "hash", "name": model}},
            "storage": {"vacuum_retention_seconds": 0},
        },
        lancedb_plugin,
        plugin_without_storage,
    )


def document(uri: str, token: str) -> DocumentImport:
    """A document whose every part carries the token."""
    return DocumentImport(
        content=token,
        uri=uri,
        title=token,
        chunks=[Chunk(content=f"{token} part{number} {uri}", order=number) for number in range(PARTS)],
        items=[DocumentItem(ref=f"#/{number}", label="paragraph", text=token) for number in range(PARTS)],
        pictures={"#/0": token.encode()},
    )


def tell(**fields: Any) -> None:
    """A line to the parent."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


class Victim:
    """The operations. `chosen` yields the same sequence for the same seed."""

    def __init__(self, client: HaikuRAG, seed: int) -> None:
        self.client = client
        self.random = random.Random(seed)
        self.turn = 0
        self.seed = seed

    def token(self) -> str:
        self.turn += 1
        return f"t{self.seed}x{self.turn}"

    async def uris(self) -> list[str]:
        return [str(found.uri) for found in await self.client.list_documents()]

    async def add(self) -> None:
        token = self.token()
        changes = {f"new-{token}-{number}": token for number in range(self.random.randint(1, 3))}
        await self._written(changes)

    async def update(self) -> None:
        token = self.token()
        uris = await self.uris()
        await self._written(dict.fromkeys(self.random.sample(uris, min(3, len(uris))), token))

    async def _written(self, changes: dict[str, str]) -> None:
        tell(begin="write", changes=changes)
        await self.client.import_documents([document(uri, token) for uri, token in changes.items()])
        tell(done=True)

    async def delete(self) -> None:
        documents = await self.client.list_documents()
        if len(documents) < 6:
            await self.add()
            return
        chosen = self.random.choice(documents)
        tell(begin="write", changes={chosen.uri: None})
        await self.client.delete_document(chosen.id)
        tell(done=True)

    async def vacuum(self) -> None:
        await self.update()
        tell(begin="keep")
        await self.client.vacuum(retention_seconds=0)
        tell(done=True)

    async def tag(self) -> None:
        known = [tag.name for tag in await self.client.tags() if tag.complete and tag.name.startswith("tag-")]
        if len(known) > 3:
            tell(begin="untag", tag=known[0])
            await self.client.delete_tag(known[0])
            tell(done=True)
        elif len(known) > 1 and self.random.random() < 0.5:
            tell(begin="restore", tag=known[-1])
            await self.client.restore_tag(known[-1])
            tell(done=True)
        else:
            name = f"tag-{self.token()}"
            tell(begin="tag", tag=name)
            await self.client.create_tag(name)
            tell(done=True)
        await self.update()

    async def rebuild(self) -> None:
        tell(begin="keep")
        async for _ in self.client.rebuild(RebuildMode.EMBED_ONLY):
            pass
        tell(done=True)


async def upsert(client: HaikuRAG, seed: int, seconds: float) -> None:
    """Write the same URIs as every other process, for a while."""
    rng = random.Random(seed)
    until = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < until:
        turn += 1
        uris = rng.sample(range(SHARED), rng.randint(1, 5))
        await client.import_documents([document(f"shared-{uri}", f"w{seed}x{turn}") for uri in uris])
        tell(written=len(uris))


async def main(location: str, model: str, seed: int, job: str) -> None:
    """Wait for the word, open the database, and work."""
    configured = config(location, model)
    tell(ready=True)
    sys.stdin.readline()
    scope = HaikuRAG(config=configured)._scope
    async with HaikuRAG.over(scope, configured, any_embedding=job == "rebuild") as client:
        if job.startswith("upsert:"):
            await upsert(client, seed, float(job.partition(":")[2]))
            return
        victim = Victim(client, seed)
        for _ in range(1 if job == "rebuild" else 1000):
            await getattr(victim, job)()


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))
    except HaikuRagError as error:
        sys.exit(f"{type(error).__name__}: {error}")
