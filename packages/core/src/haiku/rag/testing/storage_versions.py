"""Documents that say in each of their parts which version of them it is, to see whether one is whole."""

from collections.abc import Iterable

from haiku.rag.contracts.filters import Comparison
from haiku.rag.contracts.storage import Database, DocumentWrite
from haiku.rag.models import Document, DocumentItem
from haiku.rag.testing.storage_fixtures import document, text_query

PASSAGES = 4
URI = "mem:versions"


def version(number: int, uri: str = URI) -> DocumentWrite:
    """A version of the document of a URI."""
    texts = [_text(number, passage) for passage in range(PASSAGES)]
    items = [DocumentItem(ref="figure", label="picture", text=f"figure {number}")]
    pictures = {"figure": _picture(number)}
    return document(*texts, uri=uri, title=f"version {number}", metadata={"n": number}, items=items, pictures=pictures)


async def held(database: Database, uri: str = URI) -> int | None:
    """The version that the database holds, every part of it, of a document that nobody writes meanwhile."""
    row = await database.document_by_uri(uri)
    if row is None:
        return None
    number = int(row.metadata["n"])
    texts = sorted(_text(number, passage) for passage in range(PASSAGES))
    found = await database.search(text_query("passage", depth=1000, filter=Comparison("uri", "=", uri)))
    chunks = await database.chunks_by_id(found["chunk_id"].to_pylist())
    assert (row.title, row.content, row.chunk_count) == (f"version {number}", "\n\n".join(texts), PASSAGES)
    assert sorted(chunk.content for chunk in chunks) == texts
    assert [item.text for item in await database.items(row.id)] == [f"figure {number}"]
    assert await database.picture(row.id, "figure") == _picture(number)
    return number


def whole_versions(found: Iterable[str], written: Iterable[DocumentWrite]) -> None:
    """Of the chunks that one search found, those of each URI are one version of it, whole."""
    owners = {str(chunk.id): (write.uri, number) for number, write in enumerate(written) for chunk in write.chunks}
    of_uri: dict[str | None, list[int]] = {}
    for chunk in found:
        uri, number = owners[chunk]
        of_uri.setdefault(uri, []).append(number)
    for numbers in of_uri.values():
        assert numbers == [numbers[0]] * PASSAGES


async def documents_of(database: Database) -> list[Document]:
    """Everything that is listed, with its content."""
    return await database.list_documents(limit=None, offset=0, filter=None, include_content=True)


def _text(number: int, passage: int) -> str:
    return f"passage {passage} of version {number}"


def _picture(number: int) -> bytes:
    return f"picture {number}".encode() * 20
