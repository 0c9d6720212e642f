"""One open LanceDB database."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio
import pyarrow as pa
import pyarrow.compute as pc

from haiku.rag.config.models import StorageConfig
from haiku.rag.contracts import CandidateQuery, DatabaseInfo, DatabaseRef, DocumentWrite
from haiku.rag.contracts.filters import Filter
from haiku.rag.errors import ReadOnlyError
from haiku.rag.models import Chunk, Document, DocumentItem, EmbeddingIdentity
from haiku.rag.models.text import clean_text
from haiku.rag.storage.lancedb.budget import MemoryBudget
from haiku.rag.storage.lancedb.failures import reported
from haiku.rag.storage.lancedb.filter_rows import Places, selected
from haiku.rag.storage.lancedb.held_texts import HeldTexts
from haiku.rag.storage.lancedb.legs import Selection
from haiku.rag.storage.lancedb.live import LiveTables
from haiku.rag.storage.lancedb.location import folder_size
from haiku.rag.storage.lancedb.offered import Offered
from haiku.rag.storage.lancedb.reading import chunks_of, documents_with_content, items_of, picture_of
from haiku.rag.storage.lancedb.schema import ITEMS, PICTURES, SCHEMA_VERSION
from haiku.rag.storage.lancedb.search import Search, candidates, query_direction, query_terms, query_words
from haiku.rag.storage.lancedb.state import DocumentState, document_from_row
from haiku.rag.storage.lancedb.statistics import TermStatistics
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.upkeep import Upkeep
from haiku.rag.storage.lancedb.vectors import VectorStore
from haiku.rag.storage.lancedb.writing import Writer

T = TypeVar("T")
CLOSING_SECONDS = 4.0


class LanceDBDatabase:
    """Implements `haiku.rag.contracts.Database`."""

    def __init__(
        self,
        connection: Any,
        ref: DatabaseRef,
        tables: Tables,
        *,
        interval: float,
        budget: MemoryBudget,
        writable: bool,
        storage: StorageConfig,
        language: str | None = None,
    ) -> None:
        self._connection = connection
        self._ref = ref
        self._live = LiveTables(connection, ref, tables, interval=interval)
        self._upkeep = Upkeep(connection, self._live, storage, interval=interval, language=language)
        self._writer = Writer(self._live, self._upkeep)
        self._vectors = VectorStore(budget)
        self._offered = Offered()
        self._statistics = TermStatistics(budget)
        self._texts = HeldTexts(budget)
        self._selection: tuple[DocumentState, str | Filter, Places] | None = None
        self._writable = writable
        self._closed = False

    @property
    def identity(self) -> EmbeddingIdentity | None:
        """The embedding it was created for."""
        return self._live.tables.identity

    async def search(self, query: CandidateQuery) -> pa.Table:
        """Candidates, each leg bounded by `query.depth`; similarities are exact cosines."""

        async def find(tables: Tables, state: DocumentState) -> pa.Table:
            if query.vector is not None:
                self._live.check_embedding()
            direction = query_direction(query, tables.dimension, self._ref.name)
            words = query_words(query, tables.layout.language)
            selection = Selection.of(state, await self._selected(state, query.filter))
            if not selection.share or query.depth < 1:
                direction, words = None, None
            held = await self._vectors.held(tables, state, vectors=direction is not None)
            return await candidates(
                Search(
                    query=query,
                    tables=tables,
                    selection=selection,
                    direction=direction,
                    words=words,
                    rows=held.rows,
                    memory=held.memory,
                    offered=self._offered,
                    statistics=self._statistics,
                    terms=() if words is None else query_terms(query, tables.layout.language),
                )
            )

        return await self._live.read("searched", find)

    async def chunks_by_id(self, chunk_ids: Sequence[str]) -> list[Chunk]:
        """The live chunks, in the order asked."""

        async def read(tables: Tables, state: DocumentState) -> list[Chunk]:
            row_ids = self._offered.row_ids(tables.chunks, chunk_ids)
            held = None if row_ids is None else await self._texts.rows(tables.chunks, row_ids)
            return await chunks_of(tables, state, chunk_ids, row_ids=row_ids, held=held)

        return await self._live.read("read", read)

    async def list_documents(
        self, *, limit: int | None, offset: int, filter: str | Filter | None, include_content: bool
    ) -> list[Document]:
        """Documents by creation, then id."""

        async def listing(tables: Tables, state: DocumentState) -> list[Document]:
            places = await self._selected(state, filter)
            window = (range(len(state)) if places is None else places.tolist())[
                offset : None if limit is None else offset + limit
            ]
            if include_content:
                return await documents_with_content(tables, [state.ids[place] for place in window])
            return [document_from_row(row) for row in state.rows(window)]

        return await self._live.read("listed", listing)

    async def count_documents(self, *, filter: str | Filter | None) -> int:
        """How many documents the filter selects."""

        async def count(_: Tables, state: DocumentState) -> int:
            places = await self._selected(state, filter)
            return len(state) if places is None else len(places)

        return await self._live.read("counted", count)

    async def document_by_id(self, document_id: str) -> Document | None:
        """One document with its content."""
        return await self._document(lambda state: state.rows_by_id.get(document_id))

    async def document_by_uri(self, uri: str) -> Document | None:
        """One document with its content."""
        return await self._document(lambda state: state.first("uri", clean_text(uri)))

    async def document_by_title(self, title: str) -> Document | None:
        """The first document, by creation, with exactly this title."""
        return await self._document(lambda state: state.first("title", clean_text(title)))

    async def items(self, document_id: str) -> list[DocumentItem]:
        """A document's items in reading order."""

        async def read(tables: Tables, state: DocumentState) -> list[DocumentItem]:
            place = state.rows_by_id.get(document_id)
            return [] if place is None else await items_of(tables, state.revisions[place])

        return await self._live.read("read", read, parts=[ITEMS])

    async def picture(self, document_id: str, ref: str) -> bytes | None:
        """A picture's bytes by its item's ref, a page image's by `page/N`."""

        async def read(tables: Tables, state: DocumentState) -> bytes | None:
            place = state.rows_by_id.get(document_id)
            return None if place is None else await picture_of(tables, state.revisions[place], ref)

        return await self._live.read("read", read, parts=[PICTURES])

    async def write(self, documents: Sequence[DocumentWrite]) -> list[Document]:
        """Store a batch in one commit."""
        return await self._write("written to", partial(self._writer.write, documents))

    async def update(
        self, document_id: str, *, uri: str | None, title: str | None, metadata: Mapping[str, Any] | None
    ) -> Document | None:
        """Change what is given."""
        change = partial(self._writer.update, document_id, uri=uri, title=title, metadata=metadata)
        return await self._write("written to", change)

    async def delete(self, document_id: str) -> bool:
        """Remove a document with all its parts."""
        return await self._write("written to", partial(self._writer.delete, document_id))

    async def info(self) -> DatabaseInfo:
        """Sizes and versions; `size_bytes` only for a local folder."""

        async def describe(tables: Tables, state: DocumentState) -> DatabaseInfo:
            indexes = {}
            for index in await tables.chunks.list_indices():
                covered, left = index.num_indexed_rows, index.num_unindexed_rows
                indexes[index.name] = f"{index.index_type}, {covered} rows, {left} not covered"
            path = self._ref.path
            return DatabaseInfo(
                storage=self._ref.storage,
                schema_version=SCHEMA_VERSION,
                documents=len(state),
                chunks=state.chunk_count,
                identity=tables.identity,
                size_bytes=None if path is None else await anyio.to_thread.run_sync(folder_size, path),
                updated_at=pc.max(state.table["updated_at"]).as_py(),
                indexes=indexes,
                language=tables.layout.language,
                upkeep=tables.layout.upkeep,
            )

        return await self._live.read("read", describe)

    async def close(self) -> None:
        """Finish upkeep as far as the time allows, and release the handles."""
        if self._closed:
            return
        self._closed = True
        try:
            with anyio.move_on_after(CLOSING_SECONDS):
                await self._upkeep.finish()
        finally:
            self._texts.close()
            with anyio.CancelScope(shield=True):
                await self._statistics.close()
                await self._vectors.close()
                await self._live.close()

    async def _document(self, find: Callable[[DocumentState], int | None]) -> Document | None:
        async def read(tables: Tables, state: DocumentState) -> Document | None:
            place = find(state)
            found = [] if place is None else await documents_with_content(tables, [state.ids[place]])
            return found[0] if found else None

        return await self._live.read("read", read)

    async def _write(self, action: str, operation: Callable[[], Awaitable[T]]) -> T:
        if not self._writable:
            raise ReadOnlyError(
                f"database '{self._ref.name}' is open for reading only. Open it for writing to change it.",
                source=self._ref.name,
            )
        return await reported(self._ref, action, operation)

    async def _selected(self, state: DocumentState, condition: str | Filter | None) -> Places | None:
        """The places that the filter selects. A search in one database asks twice: the last answer is kept."""
        if condition is None:
            return None
        kept = self._selection
        if kept is not None and kept[0] is state and _is_same(kept[1], condition):
            return kept[2]
        places = await anyio.to_thread.run_sync(selected, state, condition)
        self._selection = (state, condition, places)
        return places


def _is_same(one: str | Filter, other: str | Filter) -> bool:
    """Whether two filters are one. Of two structures Python would take 1 and true for equal, and filters do not."""
    return one is other or (isinstance(one, str) and one == other)
