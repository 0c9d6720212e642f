"""Rebuilding a database: every document made anew, in place, or beside it where the embedding is another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
from pydantic import ValidationError

from haiku.rag.client.capability import require_capability
from haiku.rag.client.renewing import Renewed, renewed
from haiku.rag.client.writing import Writer
from haiku.rag.contracts.maintenance import RebuiltDatabase, UpkeepDatabase
from haiku.rag.contracts.storage import Database, DatabaseRef
from haiku.rag.errors import ConversionError, EmbeddingError, StorageError, UnsupportedSourceError
from haiku.rag.models import Document, EmbeddingIdentity, RebuildMode, RebuildStep
from haiku.rag.models.documents import Model
from haiku.rag.models.text import clean_text, shown_address

if TYPE_CHECKING:
    from haiku.rag.federation.session import Session

T = TypeVar("T")
AT_ONCE = 4
"""So many documents are in memory at a time."""
ROUNDS = 20
FAILURES = (ConversionError, EmbeddingError, UnsupportedSourceError)
"""What is one document's failure and does not stop the rest."""


class Job(Model):
    """What a rebuild writes down: a document that was changed at or after `started_at` is done in place."""

    mode: RebuildMode
    started_at: datetime
    embedding: str


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A document of the database and what was made of it: None where it is gone, a text where that failed."""

    document: Document
    made: Renewed | str | None


@dataclass(kw_only=True)
class Rebuild:
    """A rebuild of one database."""

    session: Session
    ref: DatabaseRef
    mode: RebuildMode
    _done: int = 0
    _total: int = 0
    _writer: Writer = field(init=False)

    def __post_init__(self) -> None:
        self._writer = Writer(self.session, self.ref, any_embedding=True)

    async def steps(self) -> AsyncIterator[RebuildStep]:
        """Rebuild, telling of every document."""
        reindex = self.mode is RebuildMode.REINDEX
        operation = f"rebuilding ({self.mode})"
        require_capability(self.session.kernel, self.ref, "upkeep" if reindex else "rebuild", operation)
        steps = self._reindexed() if reindex else self._rebuilt()
        async for step in steps:
            yield step

    async def _reindexed(self) -> AsyncIterator[RebuildStep]:
        self._total = 1
        await self._writer.run(lambda database: cast("UpkeepDatabase", database).create_index())
        self._done = 1
        yield self._note("every index was built again")

    async def _rebuilt(self) -> AsyncIterator[RebuildStep]:
        embedder = self.session.embedder
        identity = await anyio.to_thread.run_sync(lambda: embedder.identity)
        recorded = await self._writer.run(_identity_of)
        in_place = recorded is None or recorded == identity
        begun = await self._begun()
        job = begun if begun and (begun.mode, begun.embedding) == (self.mode, identity.describe()) else None
        if begun is not None:
            yield self._note(_about(begun, goes_on=job is not None))
        goes_on = job is not None
        job = job or await self._begin(identity)
        rest = self._in_place(job) if in_place else self._beside(identity, anew=not goes_on)
        async for step in rest:
            yield step

    async def _begun(self) -> Job | None:
        written = await self._run(lambda database: database.job())
        try:
            return None if written is None else Job.model_validate_json(written)
        except ValidationError:
            return None

    async def _begin(self, identity: EmbeddingIdentity) -> Job:
        """Write down that a rebuild begins, later than any document was changed whatever the clocks say."""
        changed = [document.updated_at + timedelta(microseconds=1) for document in await self._documents()]
        job = Job(mode=self.mode, started_at=max([datetime.now(UTC), *changed]), embedding=identity.describe())
        await self._run(lambda database: database.set_job(None))
        await self._run(lambda database: database.set_job(job.model_dump_json()))
        return job

    async def _in_place(self, job: Job) -> AsyncIterator[RebuildStep]:
        documents = await self._documents()
        pending = [document for document in documents if document.updated_at < job.started_at]
        self._count(pending, len(documents))
        for batch in _batches(pending):
            for prepared in await self._prepared(batch):
                yield await self._rewritten(prepared, job)
        await self._run(lambda database: database.set_job(None))

    async def _rewritten(self, prepared: Prepared, job: Job) -> RebuildStep:
        if not isinstance(prepared.made, Renewed):
            return self._step(prepared)
        write = replace(prepared.made.write, updated_at=max(datetime.now(UTC), job.started_at))
        seen = prepared.document
        stored = await self._run(lambda database: database.rewrite(write, seen=seen))
        return self._step(prepared if stored is not None else replace(prepared, made=None))

    async def _beside(self, identity: EmbeddingIdentity, *, anew: bool) -> AsyncIterator[RebuildStep]:
        """Fill a staged database until it holds what this one does, and put it in place."""
        staged = await self._run(lambda database: database.staged(identity, anew=anew))
        for _ in range(ROUNDS):
            failed = 0
            async for step in self._filled(staged):
                failed += step.outcome == "failed"
                yield step
            caught: list[RebuildStep] = []
            adopted = not failed and await self._adopted(staged, caught)
            for step in caught:
                failed += step.outcome == "failed"
                yield step
            if adopted:
                await self._run(lambda database: database.set_job(None))
                return
            if failed:
                yield self._note(
                    f"database '{self.ref.name}' keeps its embedding, because documents failed: {failed}. Put them "
                    "right or delete them, then go on with the same command"
                )
                return
        raise StorageError(
            f"documents of database '{self.ref.name}' kept changing. Stop what writes them, then go on with the same "
            "command.",
            source=self.ref.name,
        )

    async def _adopted(self, staged: RebuiltDatabase, caught: list[RebuildStep]) -> bool:
        """Put the staged database in place; what changed since it was filled is caught up with, and told of."""

        async def catch_up() -> None:
            if any(step.outcome == "failed" for step in caught):
                return
            async for step in self._filled(staged):
                caught.append(step)

        return await self._run(lambda database: database.adopt(catch_up=catch_up))

    async def _filled(self, staged: RebuiltDatabase) -> AsyncIterator[RebuildStep]:
        """Bring the staged database up to what this one holds now."""
        here = await self._documents()
        current = {document.id: document.updated_at for document in here}
        there = {document.id: document.updated_at for document in await self._beyond(partial(_listing, staged))}
        for outdated in [document for document, moment in there.items() if current.get(document) != moment]:
            await self._beyond(partial(staged.delete, outdated))
        pending = [document for document in here if there.get(document.id) != document.updated_at]
        self._count(pending, len(here))
        for batch in _batches(pending):
            prepared = await self._prepared(batch)
            writes = [
                replace(entry.made.write, updated_at=entry.document.updated_at)
                for entry in prepared
                if isinstance(entry.made, Renewed)
            ]
            await self._beyond(partial(staged.write, writes))
            for entry in prepared:
                yield self._step(entry)

    async def _prepared(self, batch: Sequence[Document]) -> list[Prepared]:
        """Make documents anew, together. What is no document's failure is raised once all have ended."""
        made: dict[int, Prepared] = {}
        errors: list[Exception] = []

        async def prepare(index: int, document: Document) -> None:
            try:
                made[index] = await self._renewed(document)
            except Exception as error:  # noqa: BLE001 - raised below, where it stands alone
                errors.append(error)

        async with anyio.create_task_group() as group:
            for index, document in enumerate(batch):
                group.start_soon(prepare, index, document)
        if errors:
            raise errors[0]
        return [made[index] for index in range(len(batch))]

    async def _renewed(self, document: Document) -> Prepared:
        parts = await self._run(lambda database: database.parts(document.id))
        if parts is None:
            return Prepared(document=document, made=None)
        seen = document.model_copy(update={"updated_at": parts.updated_at})
        try:
            return Prepared(document=seen, made=await renewed(self.session, self._writer, parts, self.mode))
        except FAILURES as error:
            return Prepared(document=seen, made=str(error))

    async def _documents(self) -> list[Document]:
        return await self._writer.run(_listing)

    async def _run(self, operation: Callable[[RebuiltDatabase], Awaitable[T]]) -> T:
        return await self._writer.run(lambda database: operation(cast("RebuiltDatabase", database)))

    async def _beyond(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Run what concerns the staged database; its failure is this one's."""
        return await self._writer.run(lambda _: operation())

    def _count(self, pending: Sequence[Document], total: int) -> None:
        self._done, self._total = total - len(pending), total

    def _note(self, text: str) -> RebuildStep:
        return RebuildStep(done=self._done, total=self._total, outcome="note", reason=text)

    def _step(self, prepared: Prepared) -> RebuildStep:
        self._done += 1
        document, made = prepared.document, prepared.made
        facts: dict[str, Any] = {"outcome": "left", "reason": "another writer has changed or deleted it meanwhile"}
        if isinstance(made, str):
            facts = {"outcome": "failed", "reason": clean_text(made)}
        elif made is not None:
            facts = {"outcome": "rebuilt", "reason": clean_text(made.note)}
        name = shown_address(document.uri) if document.uri else document.title or document.id
        return RebuildStep(done=self._done, total=self._total, document_id=document.id, uri=clean_text(name), **facts)


def _about(begun: Job, *, goes_on: bool) -> str:
    what = f"the rebuild ({begun.mode}) that was begun at {begun.started_at:%Y-%m-%d %H:%M:%S}"
    if goes_on:
        return f"{what} goes on"
    return f"{what} and not finished, for {begun.embedding}, is given up; this one starts anew"


def _batches(documents: Sequence[Document]) -> Iterator[Sequence[Document]]:
    for start in range(0, len(documents), AT_ONCE):
        yield documents[start : start + AT_ONCE]


async def _listing(database: Database) -> list[Document]:
    return await database.list_documents(limit=None, offset=0, filter=None, include_content=False)


async def _identity_of(database: Database) -> EmbeddingIdentity | None:
    return database.identity
