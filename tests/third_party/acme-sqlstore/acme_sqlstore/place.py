"""Where a database is: a file, and a name within it."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from acme_sqlstore.selection import add_functions
from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import MissingDatabaseError
from haiku.rag.models import EmbeddingIdentity

SCHEME = "acme-sql://"
SCHEMA = (Path(__file__).parent / "schema.sql").read_text("utf-8")


@dataclass(frozen=True)
class Place:
    """A file, and the name of a database in it: `acme-sql:///folder/file.sqlite#name`."""

    file: Path
    name: str

    @classmethod
    def of(cls, ref: DatabaseRef) -> "Place":
        """The place of a database."""
        file, _, name = ref.location.removeprefix(SCHEME).partition("#")
        return cls(Path(file), name or ref.name)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for one operation, whose writes are committed together."""
        if not self.file.is_file():
            raise MissingDatabaseError(f"there is no database '{self.name}'.")
        connection = sqlite3.connect(self.file, timeout=30, isolation_level=None)
        try:
            connection.execute("PRAGMA case_sensitive_like = ON")
            connection.execute("PRAGMA synchronous = OFF")
            add_functions(connection)
            yield connection
        finally:
            connection.close()

    def create(self, identity: EmbeddingIdentity | None) -> None:
        """Make the file and the database where they are not there."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.touch()
        with self.connection() as connection:
            connection.executescript(SCHEMA)
            recorded = json.dumps(None if identity is None else asdict(identity))
            connection.execute("INSERT OR IGNORE INTO databases VALUES (?, ?)", (self.name, recorded))

    def identity(self) -> EmbeddingIdentity | None:
        """What was recorded; `MissingDatabaseError` where there is no such database."""
        with self.connection() as connection:
            row = connection.execute("SELECT identity FROM databases WHERE name = ?", (self.name,)).fetchone()
        if row is None:
            raise MissingDatabaseError(f"there is no database '{self.name}'.")
        recorded = json.loads(row[0])
        return None if recorded is None else EmbeddingIdentity(**recorded)
