"""Where databases in memory live, and what a test can do to them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from uuid import uuid4

import anyio

from haiku.rag.contracts.storage import DatabaseRef, DocumentWrite
from haiku.rag.errors import TagError
from haiku.rag.models import Document, EmbeddingIdentity
from haiku.rag.testing.memory_past import MemoryPast, MemoryTag
from haiku.rag.testing.words import words

EVERY = "*"


@dataclass(frozen=True, kw_only=True)
class StoredDocument:
    """A document as stored: its row, its parts, and the words of each chunk."""

    row: Document
    parts: DocumentWrite
    words: Sequence[Sequence[str]]


@dataclass(kw_only=True)
class MemoryState:
    """What one location holds."""

    identity: EmbeddingIdentity | None
    documents: dict[str, StoredDocument] = field(default_factory=dict)
    updated_at: datetime | None = None
    job: str | None = None

    def put(self, row: Document, parts: DocumentWrite) -> Document:
        """Store a document, in place of the one with its id."""
        tokens = [words(chunk.contextualized()) for chunk in parts.chunks]
        self.documents[row.id] = StoredDocument(row=row, parts=parts, words=tokens)
        self.updated_at = row.updated_at
        return row

    def in_order(self) -> list[StoredDocument]:
        """The documents by creation, then id."""
        return sorted(self.documents.values(), key=lambda stored: (stored.row.created_at, stored.row.id))

    def by_uri(self, uri: str | None) -> StoredDocument | None:
        """The document of a URI."""
        return next((found for found in self.documents.values() if uri is not None and found.row.uri == uri), None)


class MemoryServer:
    """The databases of every `MemoryStorage` that names this server, by location.

    `calls` counts `(location, operation)`, an operation being the name of a method of the contract. `slow` and `fail`
    make a location late or broken, `heal` makes it well, `age` gives it the schema of an older day.
    """

    def __init__(self) -> None:
        self.states: dict[str, MemoryState] = {}
        self.pasts: dict[str, MemoryPast] = defaultdict(MemoryPast)
        self.calls: Counter[tuple[str, str]] = Counter()
        self._delays: dict[tuple[str, str], float] = {}
        self._errors: dict[tuple[str, str], Exception] = {}
        self._open: dict[str, int] = defaultdict(int)

    def create(self, location: str, identity: EmbeddingIdentity | None = None) -> MemoryState:
        """The state at a location, made if there is none."""
        return self.states.setdefault(location, MemoryState(identity=identity))

    def drop(self, location: str) -> None:
        """Forget what a location holds."""
        self.states.pop(location, None)
        self.pasts.pop(location, None)

    def age(self, location: str) -> None:
        """Let the database there be one that has to be migrated."""
        self.pasts[location].schema_version = 0

    def tag(self, ref: DatabaseRef, name: str) -> MemoryTag:
        """What a database's tag names; `TagError` where there is none."""
        found = self.pasts[ref.location].tags.get(name)
        if found is None:
            raise TagError(f"database '{ref.name}' has no tag '{name}'.", source=ref.name)
        return found

    def slow(self, location: str, seconds: float, operation: str = EVERY) -> None:
        """Let an operation, by default every one, take this long."""
        self._delays[location, operation] = seconds

    def fail(self, location: str, error: Exception, operation: str = EVERY) -> None:
        """Let an operation, by default every one, raise this error."""
        self._errors[location, operation] = error

    def heal(self, location: str) -> None:
        """Undo `slow` and `fail`."""
        for faults in (self._delays, self._errors):
            for key in [key for key in faults if key[0] == location]:
                del faults[key]

    def handles(self, location: str) -> int:
        """How many databases are open there now."""
        return self._open[location]

    def count_handle(self, location: str, change: int) -> None:
        """A database was opened (1) or closed (-1)."""
        self._open[location] += change

    async def visit(self, location: str, operation: str) -> None:
        """Count an operation, then be late or fail as the test wishes."""
        self.calls[location, operation] += 1
        delay = self._delays.get((location, operation), self._delays.get((location, EVERY), 0.0))
        await anyio.sleep(delay)
        error = self._errors.get((location, operation), self._errors.get((location, EVERY)))
        if error is not None:
            raise error


@cache
def memory_server(name: str = "default") -> MemoryServer:  # noqa: ARG001 - the name is the cache's key
    """The server of a name, one a process. A test that wants to be alone takes a name of its own."""
    return MemoryServer()


def now() -> datetime:
    """The time of a commit."""
    return datetime.now(UTC)


def new_row(state: MemoryState, parts: DocumentWrite, moment: datetime | None = None) -> Document:
    """The row of a document that is written: a replaced one's id and creation, and the moments that it brings."""
    replaced = state.by_uri(parts.uri) or state.documents.get(parts.id or "")
    moment = moment or now()
    return Document(
        id=replaced.row.id if replaced else parts.id or str(uuid4()),
        uri=parts.uri,
        title=parts.title,
        metadata=dict(parts.metadata),
        content=parts.content,
        content_hash=parts.content_hash,
        created_at=parts.created_at or (replaced.row.created_at if replaced else moment),
        updated_at=parts.updated_at or moment,
        chunk_count=len(parts.chunks),
    )
