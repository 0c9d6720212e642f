"""A database with what `haiku.rag.contracts.maintenance` asks for beyond reading and writing."""

from functools import partial
from typing import Any

import anyio

from haiku.rag.contracts import DatabaseRef, DocumentWrite
from haiku.rag.contracts.maintenance import Finding, HistoryEntry, TagInfo
from haiku.rag.models import Document, EmbeddingIdentity
from haiku.rag.models.upkeep import UpkeepReport
from haiku.rag.storage.lancedb.checks import Checks
from haiku.rag.storage.lancedb.database import LanceDBDatabase
from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS, reported
from haiku.rag.storage.lancedb.history import history_of
from haiku.rag.storage.lancedb.parts import OutrunError, parts_of
from haiku.rag.storage.lancedb.restoring import Restorer
from haiku.rag.storage.lancedb.schema import ITEMS, PICTURES
from haiku.rag.storage.lancedb.staging import CatchUp, Staging
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.tags import Tags

STAGED_CLOSING_SECONDS = 0.5
"""What a rebuild has staged is looked after when it is adopted: closing is to take less than 5 seconds in all."""


class MaintainedDatabase(LanceDBDatabase):
    """What `LanceDBStorage` opens."""

    def __init__(self, connection: Any, ref: DatabaseRef, tables: Tables, **options: Any) -> None:
        super().__init__(connection, ref, tables, **options)

        def staged(lent: Any, tables: Tables) -> MaintainedDatabase:
            return MaintainedDatabase(lent, ref, tables, **options)

        self._staging = Staging(connection, self._live, staged)
        self._tags = Tags(connection, ref)
        self._restorer = Restorer(connection, self._live, self._writer, self._upkeep)
        made_of = (connection, self._live, self._writer, self._upkeep, self.parts)
        self._checks = Checks(*made_of, interval=options["interval"], storage=options["storage"])

    async def parts(self, document_id: str) -> DocumentWrite | None:
        """A document as it would be written."""
        while True:
            try:
                read = partial(parts_of, document_id=document_id)
                return await self._live.read("read", read, parts=[ITEMS, PICTURES])
            except OutrunError:
                self._live.expire()

    async def rewrite(self, document: DocumentWrite, *, seen: Document) -> Document | None:
        """Replace a document, unless it is no longer as it was seen."""
        return await self._write("written to", partial(self._writer.rewrite, document, seen=seen))

    async def job(self) -> str | None:
        """What a long operation has written down."""
        return await self._live.read("read", lambda _tables, _state: self._staging.job())

    async def set_job(self, job: str | None) -> None:
        """Write it down."""
        await self._write("written to", partial(self._staging.set_job, job))

    async def staged(self, identity: EmbeddingIdentity, *, anew: bool = False) -> "MaintainedDatabase":
        """A second database within this one that records another embedding."""
        return await self._write("rebuilt", partial(self._staging.staged, identity, anew=anew))

    async def adopt(self, *, catch_up: CatchUp | None = None) -> bool:
        """Put the staged database in place of this one."""
        return await self._write("rebuilt", partial(self._staging.adopt, catch_up))

    async def vacuum(self, *, retention_seconds: float | None, dry_run: bool) -> UpkeepReport:
        """Everything that keeps the database small and fast, step by step."""
        vacuum = partial(self._upkeep.vacuum, retention_seconds=retention_seconds, dry_run=dry_run)
        return await self._write("vacuumed", vacuum)

    async def create_index(self) -> dict[str, str]:
        """Build every index again, the vector index as well where the database is small."""
        await self._write("indexed", self._upkeep.rebuild_indexes)
        return (await self.info()).indexes

    async def check(self, *, fix: bool, probe: bool = False) -> list[Finding]:
        """Read the rows and say what is wrong with them; `fix` and `probe` write."""
        check = partial(self._checks.run, fix=fix, probe=probe)
        return await (self._write("checked", check) if fix or probe else reported(self._ref, "checked", check))

    async def history(self, *, limit: int | None) -> list[HistoryEntry]:
        """The versions of the tables, newest first."""
        return await self._live.read("read", lambda tables, _state: history_of(tables, limit))

    async def tags(self) -> list[TagInfo]:
        """The tags by name, also where the newest documents cannot be read: then a tag is the way back."""
        try:
            return await self._tags.infos()
        except ENGINE_ERRORS:
            # As after another process's clean-up in the middle of it.
            return await reported(self._ref, "read", self._tags.infos)

    async def create_tag(self, name: str) -> TagInfo:
        """Name the state as it is now, whole."""
        return await self._write("tagged", partial(self._tags.create, name))

    async def delete_tag(self, name: str) -> None:
        """Forget a tag."""
        await self._write("written to", partial(self._tags.delete, name))

    async def restore_tag(self, name: str) -> str:
        """Make the state of a tag the current one; gives the tag that was put on the state before."""
        return await self._write("restored", partial(self._restorer.restore, name))

    async def close(self) -> None:
        """Close what is staged, then this."""
        try:
            with anyio.move_on_after(STAGED_CLOSING_SECONDS):
                await self._staging.close()
        finally:
            await super().close()
