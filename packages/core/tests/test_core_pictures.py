"""Pictures as chunks of their own."""

import pytest

from haiku.rag.client import DocumentImport, HaikuRAG
from haiku.rag.models import Chunk, DocumentItem
from haiku.rag.testing import plugin, testing_config

pytestmark = pytest.mark.anyio

ITEMS = [
    DocumentItem(ref="h", label="heading", text="Bridges", level=1),
    DocumentItem(ref="a", label="paragraph", text="The arch is of stone."),
    DocumentItem(ref="p", label="picture", text="An old arch", page=2),
    DocumentItem(ref="b", label="paragraph", text="The deck is of wood."),
]
BARE = [item if item.ref != "p" else item.model_copy(update={"text": ""}) for item in ITEMS]
PICTURES = {"p": b"granite keystone"}


def client(model: str) -> HaikuRAG:
    config = testing_config(
        {
            "embeddings": {"model": {"provider": "hash", "name": model}},
            "memory": {"databases": {"a": f"memory://{model}"}},
        },
        plugin,
    )
    return HaikuRAG(config=config, create=True)


async def test_a_picture_is_found_by_what_is_in_it_when_the_embedder_reads_pictures() -> None:
    async with client("image-pictures") as rag:
        content = "The arch is of stone.\n\nThe deck is of wood."
        (stored,) = await rag.import_documents([DocumentImport(content=content, items=ITEMS, pictures=PICTURES)])
        found = await rag.search(b"granite keystone", include_images=True)
        assert [hit.labels for hit in found].count(["picture"]) == 1
        hit = found[0]
        assert (hit.labels, hit.doc_item_refs, hit.page_numbers) == (["picture"], ["p"], [2])
        assert hit.content == "An old arch"
        assert hit.image_data == {"p": "Z3Jhbml0ZSBrZXlzdG9uZQ=="}
        assert stored.chunk_count > 1


async def test_a_document_of_pictures_alone_is_stored() -> None:
    async with client("image-alone") as rag:
        (stored,) = await rag.import_documents([DocumentImport(items=ITEMS[2:3], pictures=PICTURES)])
        assert stored.chunk_count == 1


async def test_an_embedder_of_text_alone_gets_no_picture() -> None:
    async with client("text-alone") as rag:
        (stored,) = await rag.import_documents([DocumentImport(content="Stone.", items=BARE, pictures=PICTURES)])
        assert all(hit.labels != ["picture"] for hit in await rag.search("stone arch"))
        assert stored.chunk_count >= 1


async def test_a_picture_chunk_that_is_brought_is_embedded_by_its_picture() -> None:
    async with client("image-brought") as rag:
        chunk = Chunk(content="caption", labels=["picture"], doc_item_refs=["p"])
        await rag.import_documents([DocumentImport(items=ITEMS, chunks=[chunk], pictures=PICTURES)])
        (hit,) = await rag.search(b"granite keystone")
        assert hit.score == pytest.approx(1.0)


def test_pictures_stand_in_document_order_under_the_headings_before_them() -> None:
    from haiku.rag.client.embedding import with_pictures

    chunks = [
        Chunk(content="The arch is of stone.", headings=["Bridges"], doc_item_refs=["a"]),
        Chunk(content="The deck is of wood.", headings=["Bridges"], doc_item_refs=["b"]),
    ]
    made = with_pictures(chunks, ITEMS, PICTURES)
    assert [chunk.content for chunk in made] == ["The arch is of stone.", "An old arch", "The deck is of wood."]
    assert made[1].headings == ["Bridges"]
