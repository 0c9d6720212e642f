"""The client, end to end, with the packages that are installed by default."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from haiku.rag.client import DocumentImport, HaikuRAG, IngestResults
from haiku.rag.config import AppConfig
from haiku.rag.embedders.local.text_embedder import TextEmbedder
from haiku.rag.models import Chunk, Document, DocumentItem

pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\n pilots"
HARBOUR = "# Harbour\n\nPilots wait in the harbour at dawn.\n\n## Fees\n\nA pilot costs two crowns.\n"


def placed(tmp_path: Path, *names: str) -> AppConfig:
    return AppConfig.model_validate({"lancedb": {"databases": {name: str(tmp_path / name) for name in names}}})


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every content that is embedded from now on, queries aside."""
    contents: list[str] = []
    embed = TextEmbedder.embed_documents

    async def counted(self: TextEmbedder, given: Sequence[Any]) -> Any:
        contents.extend(given)
        return await embed(self, given)

    monkeypatch.setattr(TextEmbedder, "embed_documents", counted)
    return contents


async def test_a_document_lives_from_its_creation_to_its_end(tmp_path: Path, embedded: list[str]) -> None:
    async with HaikuRAG(config=placed(tmp_path, "a"), create=True) as client:
        made = await client.create_document(HARBOUR, uri="u", metadata={"year": 1900})
        assert (made.title, made.source, made.metadata) == ("Harbour", "a", {"year": 1900})
        (hit, *_) = await client.search("what does a pilot cost", limit=1)
        assert (hit.document_id, hit.headings, hit.document_meta) == (made.id, ["Harbour", "Fees"], {"year": 1900})

        embedded.clear()
        assert (await client.create_document(HARBOUR, uri="u", metadata={"year": 1900})).id == made.id
        changed = await client.update_document(made.id, title="t", uri="v", metadata={"year": 1901})
        assert (changed.title, changed.uri, changed.metadata) == ("t", "v", {"year": 1901})
        assert embedded == []
        assert (await client.search("pilots"))[0].document_title == "t"

        replaced = await client.update_document(made.id, content="Granite is cut in the quarry.")
        assert (replaced.id, replaced.uri, replaced.created_at) == (made.id, "v", made.created_at)
        assert embedded != []
        assert [hit.content for hit in await client.search("pilots harbour")] == ["Granite is cut in the quarry."]

        assert await client.delete_document(made.id)
        assert not await client.delete_document(made.id)
        assert (await client.count_documents(), await client.search("granite")) == (0, [])


async def test_imported_documents_bring_chunks_vectors_pictures_and_page_images(
    tmp_path: Path, embedded: list[str]
) -> None:
    vector = [1.0] + [0.0] * 383
    item = DocumentItem(ref="#/pictures/0", label="picture", page=2, box=(0, 0, 10, 10))
    chunk = Chunk(
        content="a chart of the harbour",
        headings=["Charts"],
        page_numbers=[2],
        labels=["picture"],
        doc_item_refs=[item.ref],
        embedding=vector,
    )
    own = DocumentImport(
        content="a chart of the harbour",
        uri="own",
        items=[item],
        chunks=[chunk],
        pictures={item.ref: PNG},
        page_images={2: PNG},
    )
    plain = DocumentImport(content="Granite is cut in the quarry.", uri="plain", title="Quarry", metadata={"k": [1]})
    async with HaikuRAG(config=placed(tmp_path, "a"), create=True) as client:
        first, second = await client.import_documents([own, plain])
        assert embedded == ["Granite is cut in the quarry."]
        assert (second.title, second.metadata, second.chunk_count) == ("Quarry", {"k": [1]}, 1)
        assert await client.get_picture_bytes(first.id, item.ref) == PNG
        assert await client.get_picture_bytes(first.id, "page/2") == PNG
        assert await client.get_picture_bytes(first.id, "page/3") is None
        (hit,) = await client.search("chart", search_type="fts", include_images=True)
        assert (hit.headings, hit.page_numbers, hit.labels) == (["Charts"], [2], ["picture"])
        assert hit.image_data == {item.ref: base64.b64encode(PNG).decode()}
        (bare,) = await client.search("chart", search_type="fts")
        assert bare.image_data is None
        kept = await client.get_chunk_by_id(hit.chunk_id)
        assert kept is not None
        assert (kept.source, kept.document_id, kept.embedding) == ("a", first.id, None)


async def test_a_folder_of_every_kind_is_stored_and_stored_again_without_embedding(
    tmp_path: Path, embedded: list[str]
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.md").write_text(HARBOUR)
    (root / "b.html").write_text("<html><body><h1>Quarry</h1><p>Granite is cut by night.</p></body></html>")
    (root / "c.py").write_text("def pilots():\n    return 'boats'\n")
    (root / "d.md").write_text("")
    (root / "e.unknown").write_text("not read")
    async with HaikuRAG(config=placed(tmp_path, "a"), create=True) as client:
        results = await client.create_document_from_source(root, metadata={"set": 1})
        assert isinstance(results, IngestResults)
        assert [Path(str(document.uri)).name for document in results] == ["a.md", "b.html", "c.py"]
        assert [failure.reason for failure in results.failures] == ["'d.md' is empty."]
        embedded.clear()
        again = await client.create_document_from_source(root, metadata={"set": 1})
        assert isinstance(again, IngestResults)
        assert [document.id for document in again] == [document.id for document in results]
        assert embedded == []
        (root / "a.md").write_text(HARBOUR.replace("dawn", "dusk"))
        await client.create_document_from_source(root / "a.md")
        assert [text for text in embedded if "dusk" in text]
        assert await client.count_documents() == 3


async def test_an_image_query_is_refused_by_an_embedder_that_reads_text(tmp_path: Path) -> None:
    async with HaikuRAG(config=placed(tmp_path, "a"), create=True) as client:
        with pytest.raises(ValueError, match="reads text only, and the query is an image"):
            await client.search(PNG)


async def test_several_databases_are_searched_as_one_and_each_hit_says_where_it_is_from(tmp_path: Path) -> None:
    config = placed(tmp_path, "harbour", "quarry")
    for name, text in (("harbour", HARBOUR), ("quarry", "Granite is cut in the quarry by night.")):
        async with HaikuRAG(config=config, sources=[name], create=True) as client:
            await client.create_document(text, uri=name)
    async with HaikuRAG(config=config, read_only=True) as client:
        assert [hit.source for hit in await client.search("who cuts the granite", limit=1)] == ["quarry"]
        assert [hit.source for hit in await client.search("when do pilots wait", limit=1)] == ["harbour"]
        alone = await (await client.reader_for("harbour")).search("pilots")
        chosen = await client.search("pilots", sources=["harbour"])
        assert [(hit.chunk_id, hit.score) for hit in alone] == [(hit.chunk_id, hit.score) for hit in chosen]
        listed = await client.list_documents(filter="uri like 'q%'")
        assert [(document.source, document.uri) for document in listed] == [("quarry", "quarry")]
        assert all(isinstance(document, Document) for document in listed)


async def test_a_database_given_by_its_path_needs_no_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("HAIKU_RAG_CONFIG_PATH", raising=False)
    async with HaikuRAG("mine.lancedb", create=True) as client:
        await client.create_document(HARBOUR)
        info = await client.info()
    assert (client.source, info.storage, info.documents) == ("mine", "lancedb", 1)
    assert info.identity is not None
    assert info.identity.dimension == 384
