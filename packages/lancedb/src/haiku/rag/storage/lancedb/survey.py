"""A reading of every row, and what it found, in bounded memory."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS, failure_reason
from haiku.rag.storage.lancedb.schema import CHUNKS, DOCUMENTS, ITEMS, PICTURES
from haiku.rag.storage.lancedb.state import DocumentState
from haiku.rag.storage.lancedb.tables import Tables

Numbers = NDArray[np.int64]
MANY_ROWS = 1024
WIDE_ROWS = 8
"""So many rows with a picture or a whole text are held at once. A scan would read ahead by hundreds of megabytes."""
STALLED_SECONDS = 60.0
"""A store that gives no batch for so long does not answer."""


SAMPLES = 5
FAULTS: tuple[type[Exception], ...] = (*ENGINE_ERRORS, KeyError)
"""What reading raises, a column that is not there among it."""


class Tally:
    """How many there are of something, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.samples: list[str] = []

    def add(self, names: Sequence[str]) -> None:
        """Count some more."""
        self.count += len(names)
        self.samples += names[: SAMPLES - len(self.samples)]


class Marks:
    """Values as 64-bit hashes with the places of their documents: sixteen bytes each, however long they are."""

    def __init__(self) -> None:
        self._values: list[Numbers] = []
        self._places: list[Numbers] = []

    def add(self, values: list[int], places: Numbers) -> None:
        """Take note of values, each of the document at its place."""
        self._values.append(np.array(values, np.int64))
        self._places.append(places)

    def add_pairs(self, pairs: Sequence[tuple[int, str]]) -> None:
        """Take note of values that mean something only within their document."""
        self.add([hash(pair) for pair in pairs], np.array([place for place, _ in pairs], np.int64))

    @property
    def values(self) -> Numbers:
        """The hashes."""
        return np.concatenate([np.empty(0, np.int64), *self._values])

    @property
    def places(self) -> Numbers:
        """Their places."""
        return np.concatenate([np.empty(0, np.int64), *self._places])

    def doubled(self) -> Numbers:
        """The hashes that are there more than once. Blocking."""
        values, counts = np.unique(self.values, return_counts=True)
        return values[counts > 1]

    def missing_from(self, others: "Marks") -> Numbers:
        """The places of those that the others lack, each place once. Blocking."""
        return np.unique(self.places[~np.isin(self.values, others.values)])


@dataclass(kw_only=True)
class Survey:
    """What the rows hold; rows whose revision no document of `state` names are passed over.

    `unreadable` says of a part why it could not be read to its end. `without_chunks` are documents with text;
    `garbled`, `blurred` and `pointless` are chunks whose details are no JSON, whose vector is not finite, or zero.
    `referred` are the items that chunks refer to, `pictured` those of chunks that are a picture and nothing else.
    """

    state: DocumentState
    unreadable: dict[str, str] = field(default_factory=dict)
    counts: Numbers = field(init=False)
    without_chunks: Tally = field(default_factory=Tally)
    garbled: Tally = field(default_factory=Tally)
    blurred: Tally = field(default_factory=Tally)
    pointless: Tally = field(default_factory=Tally)
    chunks: Marks = field(default_factory=Marks)
    referred: Marks = field(default_factory=Marks)
    pictured: Marks = field(default_factory=Marks)
    items: Marks = field(default_factory=Marks)
    pictures: Marks = field(default_factory=Marks)

    def __post_init__(self) -> None:
        self.counts = np.zeros(len(self.state), np.int64)
        self._revisions = pa.array(self.state.revisions, pa.string())

    async def read(self, tables: Tables) -> None:
        """Read every table; one that cannot be read does not keep the others from being read."""
        # With all of their columns: what is not read is not known to be there.
        takers: dict[str, tuple[AsyncIterator[pa.RecordBatch], Callable[[pa.RecordBatch], None]]] = {
            DOCUMENTS: (wide_rows(tables.documents), self.take_documents),
            CHUNKS: (batches_of(tables.chunks.query(), MANY_ROWS), self.take_chunks),
            ITEMS: (batches_of(tables.items.query(), MANY_ROWS), lambda batch: self._take_refs(batch, self.items)),
            PICTURES: (wide_rows(tables.pictures), lambda batch: self._take_refs(batch, self.pictures)),
        }
        for part, (batches, take) in takers.items():
            try:
                async for batch in batches:
                    await anyio.to_thread.run_sync(take, batch)
            except FAULTS as error:
                self.unreadable[part] = failure_reason(error)

    def take_documents(self, batch: pa.RecordBatch) -> None:
        """Documents with text and without a passage."""
        has_text = pc.greater(pc.binary_length(pc.utf8_trim_whitespace(batch["content"])), 0)
        empty = pc.and_(has_text, pc.equal(batch["chunk_count"], 0))
        self.without_chunks.add(batch["id"].filter(empty).to_pylist())

    def take_chunks(self, batch: pa.RecordBatch) -> None:
        """Passages: how many, their ids, their vectors, and what they refer to."""
        places = self._places(batch)
        batch, places = batch.filter(pa.array(places >= 0)), places[places >= 0]
        self.counts += np.bincount(places, minlength=len(self.counts))
        ids = batch["id"].to_pylist()
        self.chunks.add([hash(identifier) for identifier in ids], places)
        self._take_vectors(batch["vector"], ids)
        self._take_details(batch, ids, places.tolist())

    def note_suspects(self, batch: pa.RecordBatch, suspects: Numbers, places: dict[str, list[int]]) -> None:
        """The places of live chunks whose hash is among the suspects, by their ids."""
        found = self._places(batch).tolist()
        ids = batch["id"].to_pylist()
        doubtful = np.isin(np.array([hash(identifier) for identifier in ids], np.int64), suspects).tolist()
        for identifier, place, doubted in zip(ids, found, doubtful, strict=True):
            if doubted and place >= 0:
                places.setdefault(identifier, []).append(place)

    def _take_vectors(self, column: Any, ids: list[str]) -> None:
        vectors = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
        finite = np.isfinite(vectors).all(axis=1)
        self.blurred.add([ids[row] for row in np.flatnonzero(~finite)])
        self.pointless.add([ids[row] for row in np.flatnonzero(finite & ~vectors.any(axis=1))])

    def _take_details(self, batch: pa.RecordBatch, ids: list[str], places: list[int]) -> None:
        referred: list[tuple[int, str]] = []
        pictured: list[tuple[int, str]] = []
        contents, details = batch["content"].to_pylist(), batch["details"].to_pylist()
        for identifier, place, content, text in zip(ids, places, contents, details, strict=True):
            try:
                found = json.loads(text)
                refs = [(place, str(ref)) for ref in found["doc_item_refs"]]
                is_picture = found["labels"] == ["picture"] and not content.strip()
            except (ValueError, TypeError, KeyError):
                self.garbled.add([identifier])
                continue
            referred += refs
            pictured += refs if is_picture else []
        self.referred.add_pairs(referred)
        self.pictured.add_pairs(pictured)

    def _take_refs(self, batch: pa.RecordBatch, marks: Marks) -> None:
        places = self._places(batch).tolist()
        pairs = zip(places, batch["ref"].to_pylist(), strict=True)
        marks.add_pairs([(place, ref) for place, ref in pairs if place >= 0])

    def _places(self, batch: pa.RecordBatch) -> Numbers:
        """The place of each row's document; -1 where none names its revision."""
        found = pc.fill_null(pc.index_in(batch["revision"], value_set=self._revisions), -1)
        places: Numbers = np.array(found, np.int64)
        return places


async def batches_of(query: Any, rows: int) -> AsyncIterator[pa.RecordBatch]:
    """What a query gives, some rows at a time, each within a time."""
    with anyio.fail_after(STALLED_SECONDS):
        batches = aiter(await query.to_batches(max_batch_length=rows))
    while (batch := await _next(batches)) is not None:
        yield batch


async def wide_rows(table: Any) -> AsyncIterator[pa.RecordBatch]:
    """Every row of a table of wide ones, a few at a time."""
    ids: list[Numbers] = [np.empty(0, np.int64)]
    async for batch in batches_of(table.query().select(["revision"]).with_row_id(), MANY_ROWS):
        ids.append(np.array(batch["_rowid"], np.int64))
    row_ids = np.concatenate(ids)
    for start in range(0, len(row_ids), WIDE_ROWS):
        with anyio.fail_after(STALLED_SECONDS):
            rows = await table.take_row_ids(row_ids[start : start + WIDE_ROWS].tolist()).to_arrow()
        for batch in rows.combine_chunks().to_batches():
            yield batch


async def _next(batches: Any) -> pa.RecordBatch | None:
    with anyio.fail_after(STALLED_SECONDS):
        return await anext(batches, None)


@dataclass(kw_only=True)
class Doubles:
    """Ids of passages that are there more than once: within documents, by their ids, or in several of them."""

    documents: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)

    @classmethod
    async def of(cls, survey: Survey, chunks: Any) -> "Doubles":
        """Look up what the hashes of the survey point at."""
        suspects = await anyio.to_thread.run_sync(survey.chunks.doubled)
        if not len(suspects):
            return cls()
        places: dict[str, list[int]] = {}
        async for batch in batches_of(chunks.query().select(["id", "revision"]), MANY_ROWS):
            await anyio.to_thread.run_sync(survey.note_suspects, batch, suspects, places)
        within = {place for found in places.values() for place in found if found.count(place) > 1}
        shared = [identifier for identifier, found in places.items() if len(set(found)) > 1]
        return cls(documents=[survey.state.ids[place] for place in sorted(within)], shared=shared)
