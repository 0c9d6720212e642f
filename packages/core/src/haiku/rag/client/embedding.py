"""What of a document is embedded, and its vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.embedder import Embedder
from haiku.rag.errors import EmbeddingError
from haiku.rag.models import Chunk, DocumentItem

PICTURE = "picture"


def with_pictures(chunks: Sequence[Chunk], items: Sequence[DocumentItem], pictures: Mapping[str, bytes]) -> list[Chunk]:
    """The chunks, and one for each picture that has bytes and no chunk of its own yet, in document order.

    A picture's chunk holds the item's text, its headings are those of the chunk before it.
    """
    place = {item.ref: index for index, item in enumerate(items)}
    placed: list[tuple[int, Chunk]] = []
    for chunk in chunks:
        before = placed[-1][0] if placed else 0
        placed.append((max([before, *(place[ref] for ref in chunk.doc_item_refs[:1] if ref in place)]), chunk))
    own = {ref for chunk in chunks if chunk.labels == [PICTURE] for ref in chunk.doc_item_refs}
    for item in items:
        if item.ref in pictures and item.ref not in own:
            earlier = [chunk for position, chunk in placed if position < place[item.ref] and chunk.labels != [PICTURE]]
            headings = earlier[-1].headings if earlier else []
            placed.append((place[item.ref], _picture_chunk(item, headings)))
    return [chunk for _, chunk in sorted(placed, key=lambda entry: entry[0])]


def _picture_chunk(item: DocumentItem, headings: list[str]) -> Chunk:
    return Chunk(
        content=item.text,
        headings=headings,
        labels=[PICTURE],
        page_numbers=[] if item.page is None else [item.page],
        doc_item_refs=[item.ref],
    )


async def vectors_of(
    embedder: Embedder, chunks: Sequence[Chunk], pictures: Mapping[str, bytes], *, batch_size: int
) -> NDArray[np.float32]:
    """One row a chunk: the embedding that it brings, else one made of its picture or its text.

    `EmbeddingError` where a vector has not the embedder's dimension or is not finite.
    """
    dimension = embedder.identity.dimension
    vectors = np.zeros((len(chunks), dimension), dtype=np.float32)
    missing = [index for index, chunk in enumerate(chunks) if chunk.embedding is None]
    for index, chunk in enumerate(chunks):
        if chunk.embedding is not None:
            vectors[index] = _checked(chunk.embedding, dimension, index)
    seen = pictures if "image" in embedder.modalities else {}
    for start in range(0, len(missing), batch_size):
        batch = missing[start : start + batch_size]
        made = np.asarray(
            await embedder.embed_documents([_embedded(chunks[index], seen) for index in batch]), dtype=np.float32
        )
        if made.shape != (len(batch), dimension) or not np.isfinite(made).all():
            raise EmbeddingError(
                f"the embedder returned vectors of shape {made.shape} or not finite, and {len(batch)} of "
                f"{dimension} finite numbers were wanted."
            )
        vectors[batch] = made
    return vectors


def _embedded(chunk: Chunk, pictures: Mapping[str, bytes]) -> str | bytes:
    if chunk.labels == [PICTURE] and len(chunk.doc_item_refs) == 1:
        return pictures.get(chunk.doc_item_refs[0]) or chunk.contextualized()
    return chunk.contextualized()


def _checked(embedding: Sequence[float], dimension: int, index: int) -> NDArray[np.float32]:
    vector = np.asarray(embedding, dtype=np.float32)
    if vector.shape != (dimension,) or not np.isfinite(vector).all():
        raise EmbeddingError(f"the embedding of chunk {index} is not {dimension} finite numbers.")
    return vector
