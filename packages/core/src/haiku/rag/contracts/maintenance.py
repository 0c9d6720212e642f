"""What an engine may offer beyond reading and writing: upkeep, checks, history, tags, rebuilding, migrations.

Each group is a capability that the engine's record names (`StorageRecord.capabilities`); core asks for nothing that it
does not name.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Literal, Protocol

from pydantic import BaseModel

from haiku.rag.contracts.storage import Database, DatabaseRef, DocumentWrite
from haiku.rag.models import Document, EmbeddingIdentity
from haiku.rag.models.upkeep import UpkeepReport

Capability = Literal["upkeep", "checks", "history", "tags", "rebuild", "migrations"]


class Finding(BaseModel):
    """What a health check found.

    `check` is its name, such as `vector_dimension`; `message` a sentence that says what is wrong, and `remedy` what to
    do about it. `samples` holds up to five ids. `fixable` says that fixing it is safe, `fixed` that it was just done.
    """

    check: str
    status: Literal["ok", "warning", "failed"]
    message: str
    remedy: str = ""
    samples: list[str] = []
    fixable: bool = False
    fixed: bool = False


class HistoryEntry(BaseModel):
    """A past state of a part of a database: when it came to be and by what; `tags` are the names that it goes by."""

    part: str
    version: int
    at: datetime
    operation: str
    tags: list[str] = []


class TagInfo(BaseModel):
    """A tag. `complete` is False where a part of the database does not have it, so that it cannot be read."""

    name: str
    created_at: datetime | None = None
    complete: bool = True


class Migration(BaseModel):
    """A step from one schema version to the next."""

    version: int
    summary: str


class UpkeepDatabase(Database, Protocol):
    """Capability `upkeep`."""

    async def vacuum(self, *, retention_seconds: float | None, dry_run: bool) -> UpkeepReport:
        """Everything that keeps a database small and fast, step by step; a step that fails does not stop the next.

        Old states are kept for `retention_seconds` (None: as configured), never for less than readers and writers
        need. With `dry_run` nothing changes, and the report says what would be done.
        """

    async def create_index(self) -> dict[str, str]:
        """Build every index again, whatever there is, and the vector index however small the database is.

        Returns what `DatabaseInfo.indexes` then says. Searching goes on meanwhile.
        """


class CheckedDatabase(Database, Protocol):
    """Capability `checks`."""

    async def check(self, *, fix: bool, probe: bool = False) -> list[Finding]:
        """Read the rows and say what is wrong with them; a check that cannot be made is a finding, and no error.

        With `fix`, put right what is safe to put right, and look again. With `probe`, find out by writing scratch, and
        removing it, whether the store keeps its promises. Without either nothing is written. No finding says where the
        database is.
        """


class HistoricDatabase(Database, Protocol):
    """Capability `history`."""

    async def history(self, *, limit: int | None) -> list[HistoryEntry]:
        """The states that can still be told apart, newest first."""


class TaggedDatabase(Database, Protocol):
    """Capability `tags`. A reference with a tag opens the database as it was when the tag was made, read-only."""

    async def tags(self) -> list[TagInfo]:
        """The tags by name."""

    async def create_tag(self, name: str) -> TagInfo:
        """Name the state as it is now, whole; `TagError` where the name is taken or not one."""

    async def delete_tag(self, name: str) -> None:
        """Forget a tag, also one that is not complete; `TagError` where there is none."""

    async def restore_tag(self, name: str) -> str:
        """Make the state of a tag the current one, in one commit; returns the tag that was put on the state before."""


class RebuiltDatabase(Database, Protocol):
    """Capability `rebuild`: documents with all their parts, written back, in place or with another embedding."""

    async def parts(self, document_id: str) -> DocumentWrite | None:
        """A document as it would be written: every part, vectors included, and its moments. None where there is none.

        Where the database records another embedding than the one configured, the vectors are those of the recorded one.
        """

    async def rewrite(self, document: DocumentWrite, *, seen: Document) -> Document | None:
        """Replace a document (the one of `seen.id`) in one commit, unless it is no longer as it was seen; None then.

        So a rebuild never undoes what another writer has written meanwhile. The document keeps its URI, its id and its
        creation.
        """

    async def job(self) -> str | None:
        """What a long operation that is under way has written down, for whoever goes on with it."""

    async def set_job(self, job: str | None) -> None:
        """Write it down, durably; None when the operation is done or given up, and with it what is staged."""

    async def staged(self, identity: EmbeddingIdentity, *, anew: bool = False) -> "RebuiltDatabase":
        """A second database within this one that records another embedding; readers do not see it.

        One that was begun with the same identity is gone on with unless it is to be `anew`, any other is thrown away.
        `DocumentWrite.created_at` and `updated_at` are kept as given when documents are written to it. Closing this
        database closes it.
        """

    async def adopt(self, *, catch_up: Callable[[], Awaitable[None]] | None = None) -> bool:
        """Put the staged database in place of this one, in one commit, unless documents changed that it lacks.

        False, with nothing changed, where a document here has another `updated_at` than there, or is only in one of the
        two: copy it or delete it there, and adopt again. Where writers leave no time for that, `catch_up` does it: it
        is awaited where they differ, a few times if need be, while writers are held back, and cancelled after a few
        seconds.

        Writers that are open elsewhere write to the new one from then on or are refused for its embedding; nothing that
        they had committed is lost.
        """


class MigratingStorage(Protocol):
    """Capability `migrations`."""

    async def pending_migrations(self, ref: DatabaseRef) -> Sequence[Migration]:
        """The steps from the version of a database to the current one; none where it is current. Reads only."""

    async def migrate(self, ref: DatabaseRef) -> Sequence[Migration]:
        """Take them. Killed at any point, it leaves the database at one of the versions, and can be run again."""
