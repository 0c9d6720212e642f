"""The reranker in a client over two databases, and a process that is interrupted."""

import signal
import subprocess
import sys
from typing import Any

import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.rerankers.local import plugin
from haiku.rag.testing import plugin as memory_plugin
from haiku.rag.testing import testing_config

pytestmark = pytest.mark.anyio

QUERY = "who keeps the key of the lighthouse"
HARBOUR = {
    "key.md": "The harbour master keeps the lighthouse key in her desk.",
    "bread.md": "Bread rises because yeast makes gas.",
}
TOWN = {"music.md": "The key of G has one sharp.", "history.md": "A lighthouse stood here until 1911."}

INTERRUPTED = """
import anyio
from haiku.rag.contracts import RerankCandidate
from haiku.rag.embedders.local.model import EncoderModel
from haiku.rag.rerankers.local.reranker import LocalReranker
from haiku.rag.rerankers.local.settings import RerankLocalSettings

whole = EncoderModel.token_vectors

def announced(self, sequences):
    print("reading", flush=True)
    return whole(self, sequences)

EncoderModel.token_vectors = announced
texts = [f"{number} " + "Owls hunt at night. " * 2000 for number in range(200)]
candidates = [RerankCandidate(text=text, source="s", chunk_id=text[:3]) for text in texts]
local = LocalReranker(RerankLocalSettings(max_candidates=200, max_tokens=4000))
try:
    anyio.run(local.rerank, "owls", candidates, 5)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def config(server: str, **sections: Any) -> AppConfig:
    data = {
        "memory": {"server": server, "databases": {name: f"memory://{name}" for name in ("harbour", "town")}},
        "embeddings": {"model": {"provider": "hash"}},
        "reranking": {"model": {"provider": "local"}, "required": True},
        **sections,
    }
    return testing_config(data, memory_plugin, plugin)


async def filled(server: str, **sections: Any) -> AppConfig:
    made = config(server, **sections)
    for name, texts in (("harbour", HARBOUR), ("town", TOWN)):
        async with HaikuRAG(config=made, sources=[name], create=True) as writer:
            for uri, text in texts.items():
                await writer.create_document(text, uri=uri)
    return made


async def test_two_databases_are_ranked_as_one_list_by_what_answers_the_query() -> None:
    made = await filled("rerank-local-two")
    async with HaikuRAG(config=made, read_only=True) as client:
        results = await client.search(QUERY, limit=4)
        again = await client.search(QUERY, limit=4)
    assert (results[0].document_uri, results[0].source) == ("key.md", "harbour")
    assert {result.source for result in results} == {"harbour", "town"}
    assert [result.score for result in results] == sorted((result.score for result in results), reverse=True)
    assert [(result.chunk_id, result.score) for result in again] == [
        (result.chunk_id, result.score) for result in results
    ]


async def test_a_weight_and_a_lowest_score_apply_to_its_scores() -> None:
    made = await filled("rerank-local-weights")
    async with HaikuRAG(config=made, read_only=True) as client:
        without = await client.search(QUERY, limit=4, weights={"harbour": 0.0, "town": 1.0})
        above = await client.search(QUERY, limit=4, min_score=0.35)
    assert {result.source for result in without} == {"town"}
    assert above[0].document_uri == "key.md"
    assert len(above) < 4


def test_an_interrupted_process_ends_after_its_batch() -> None:
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(2):  # the query, and the first batch of passages
            assert process.stdout.readline() == "reading\n"
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(60) == 0
    assert rest.endswith("interrupted\n")
    assert rest.count("reading") <= 2
