"""From ranked rows to results: the survivors only, each through the database that it came from."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.federation.boundary import Outcome, attempt_all
from haiku.rag.federation.fetch import Opened
from haiku.rag.federation.session import Session
from haiku.rag.models import Chunk, Provenance, SearchResult


async def read_chunks(
    session: Session,
    pool: pa.Table,
    rows: NDArray[np.int64],
    refs: Sequence[DatabaseRef],
    opened: Opened,
    *,
    timeout_s: float,
) -> tuple[list[Chunk | None], list[Outcome[list[Chunk]]]]:
    """The chunks of `rows`, None where one is gone, and the outcome of every database that was asked.

    Ids are unique within a database only, so every chunk is keyed by its source and its id.
    """
    picked = pool.select(["chunk_id", "source"]).take(pa.array(rows)).to_pydict()
    keys = [
        (refs[source].name, chunk_id) for source, chunk_id in zip(picked["source"], picked["chunk_id"], strict=True)
    ]
    wanted: dict[str, list[str]] = defaultdict(list)
    for name, chunk_id in keys:
        wanted[name].append(chunk_id)
    asked = [opened[name].ref for name in wanted]

    async def read(ref: DatabaseRef) -> list[Chunk]:
        database = opened[ref.name].value
        return await database.chunks_by_id(wanted[ref.name]) if database is not None else []

    outcomes = await attempt_all(session.kernel, asked, read, timeout_s=timeout_s)
    found = {(outcome.ref.name, chunk.id): chunk for outcome in outcomes for chunk in outcome.value or []}
    return [found.get(key) for key in keys], outcomes


def as_result(chunk: Chunk, *, source: str, score: float, also_in: Sequence[Provenance] = ()) -> SearchResult:
    """A chunk as a hit of the named database."""
    return SearchResult(
        content=chunk.content,
        score=score,
        source=source,
        chunk_id=chunk.id or "",
        document_id=chunk.document_id or "",
        document_uri=chunk.document_uri,
        document_title=chunk.document_title,
        document_meta=chunk.document_meta,
        headings=chunk.headings,
        page_numbers=chunk.page_numbers,
        labels=chunk.labels,
        doc_item_refs=chunk.doc_item_refs,
        also_in=list(also_in),
    )


def as_provenance(chunk: Chunk, *, source: str) -> Provenance:
    """Where a chunk that is named beside a hit is from."""
    return Provenance(
        source=source,
        chunk_id=chunk.id or "",
        document_id=chunk.document_id or "",
        document_uri=chunk.document_uri,
        document_title=chunk.document_title,
    )


async def add_images(
    session: Session, results: Sequence[SearchResult], opened: Opened, *, timeout_s: float
) -> list[Outcome[None]]:
    """Attach the pictures of the hits that are made of some, as base64 text by item ref; an outcome a database."""
    pictured = [result for result in results if "picture" in result.labels]
    refs = [opened[name].ref for name in dict.fromkeys(result.source for result in pictured)]

    async def read(ref: DatabaseRef) -> None:
        database = opened[ref.name].value
        for result in pictured:
            if result.source != ref.name or database is None:
                continue
            images = {item: await database.picture(result.document_id, item) for item in result.doc_item_refs}
            result.image_data = {item: base64.b64encode(data).decode() for item, data in images.items() if data}

    return await attempt_all(session.kernel, refs, read, timeout_s=timeout_s)
