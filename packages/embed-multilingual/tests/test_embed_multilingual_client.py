"""Databases of this embedder: made, cut into chunks, and searched by the client."""

from pathlib import Path

import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.embedders.multilingual.text_embedder import MultilingualEmbedder
from haiku.rag.errors import ConfigMismatchError

pytestmark = pytest.mark.anyio

FERRY = "The ferry to the island leaves at seven in the morning."
RICE = "米は水で三回すすいでから炊きます。"


def configured(folder: Path, **model: object) -> AppConfig:
    return AppConfig.model_validate(
        {
            "embeddings": {"model": {"provider": "multilingual", **model}},
            "lancedb": {"databases": {"a": str(folder / "a"), "b": str(folder / "b")}},
            "processing": {"chunk_size": 64},
        }
    )


async def test_two_databases_in_two_languages_answer_questions_in_a_third(tmp_path: Path) -> None:
    config = configured(tmp_path)
    for name, text in (("a", FERRY), ("b", RICE)):
        async with HaikuRAG(config=config, sources=[name], create=True) as client:
            await client.create_document(text, uri=name)
    async with HaikuRAG(config=config, read_only=True) as client:
        boat = await client.search("Wann fährt das Schiff?", search_type="vector")
        rice = await client.search("Wie wird Reis gewaschen?", search_type="vector")
    assert [hit.content for hit in boat] == [FERRY, RICE]
    assert [hit.content for hit in rice] == [RICE, FERRY]


async def test_another_document_prefix_is_another_embedding(tmp_path: Path) -> None:
    async with HaikuRAG(config=configured(tmp_path), sources=["a"], create=True) as client:
        await client.create_document(FERRY, uri="ferry")
    with pytest.raises(ConfigMismatchError, match="document prefix"):
        async with HaikuRAG(config=configured(tmp_path, document_prefix=""), sources=["a"]) as client:
            await client.create_document(FERRY, uri="ferry")


@pytest.mark.parametrize(
    "sentence", ["The harbour was quiet and the boats lay still. ", "港は静かで、船はじっとしていた。"]
)
async def test_chunks_fit_into_the_chunk_size_in_tokens_of_this_model(
    tmp_path: Path, multilingual: MultilingualEmbedder, sentence: str
) -> None:
    (tmp_path / "long.md").write_text(sentence * 80, encoding="utf-8")
    async with HaikuRAG(config=configured(tmp_path), sources=["a"], create=True) as client:
        chunks = await client.chunk(await client.convert(tmp_path / "long.md"))
    sizes = multilingual.count_tokens([chunk.content for chunk in chunks])
    assert len(chunks) > 5
    assert max(sizes) <= 64
    assert sorted(sizes)[len(sizes) // 2] > 32
