"""Which tables make up a database: its generations, one of them current, as the settings table tells."""

import json
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Self

import pyarrow as pa

from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import MigrationRequiredError
from haiku.rag.models import EmbeddingIdentity, UpkeepReport
from haiku.rag.storage.lancedb.schema import CHUNKS, DOCUMENTS, ITEMS, METRIC, PICTURES, SCHEMA_VERSION, SETTINGS_SCHEMA

State = Literal["current", "sealed", "staged", "old"]
PARTS = (DOCUMENTS, CHUNKS, ITEMS, PICTURES)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A generation: a whole set of tables, and what they were made with.

    The current one is read and written; for the moment of a change of generations it is sealed: read, and a commit to
    it counts only once the seal is gone. A staged one is being filled by a rebuild and is shown to nobody; an old one
    was current before, and upkeep drops it once no reader can be on it, unless a tag keeps it. `tables` maps the four
    parts to the names of tables. `changed_at` is when the state was last changed; `job` is what a rebuild has written
    down, `upkeep` the outcome of the last upkeep.
    """

    generation: int
    state: State
    identity: EmbeddingIdentity
    language: str | None
    tables: dict[str, str]
    schema_version: int = SCHEMA_VERSION
    metric: str = METRIC
    changed_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    job: str | None = None
    upkeep: UpkeepReport | None = None

    @classmethod
    def numbered(cls, generation: int, state: State, *, identity: EmbeddingIdentity, language: str | None) -> Self:
        """A generation with tables of its own: the first has the plain names."""
        suffix = f"-{generation}" if generation else ""
        tables = {part: f"{part}{suffix}" for part in PARTS}
        return cls(generation=generation, state=state, identity=identity, language=language, tables=tables)

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        """A row of the settings table."""
        given = {
            "identity": EmbeddingIdentity(**json.loads(row["identity"])),
            "tables": json.loads(row["tables"]),
            "upkeep": None if row["upkeep"] is None else UpkeepReport.model_validate_json(row["upkeep"]),
        }
        return cls(**{**row, **given})

    def in_state(self, state: State) -> Self:
        """The same generation in another state, from now on."""
        return replace(self, state=state, changed_at=datetime.now(UTC))

    def as_row(self) -> dict[str, Any]:
        """The row of the settings table."""
        texts = {
            "identity": json.dumps(asdict(self.identity)),
            "tables": json.dumps(self.tables),
            "upkeep": None if self.upkeep is None else self.upkeep.model_dump_json(),
        }
        return {**{name: getattr(self, name) for name in SETTINGS_SCHEMA.names}, **texts}


async def read_layouts(settings: Any, ref: DatabaseRef) -> list[Layout]:
    """Every generation, by number; none where a creation was broken off.

    `MigrationRequiredError` where one has another schema.
    """
    rows = (await settings.query().to_arrow()).to_pylist()
    for row in rows:
        check_version(row["schema_version"], ref)
    return sorted(map(Layout.from_row, rows), key=lambda layout: layout.generation)


def current_layout(layouts: list[Layout]) -> Layout | None:
    """The generation that is read and written, sealed or not."""
    return next((layout for layout in layouts if layout.state in ("current", "sealed")), None)


def layout_table(*layouts: Layout) -> pa.Table:
    """Generations as rows of the settings table."""
    return pa.Table.from_pylist([layout.as_row() for layout in layouts], schema=SETTINGS_SCHEMA)


def check_version(version: int, ref: DatabaseRef) -> None:
    """`MigrationRequiredError` for any schema version but this package's own."""
    if version == SCHEMA_VERSION:
        return
    how = "Migrate it with: haiku-rag migrate." if version < SCHEMA_VERSION else "Upgrade haiku-rag-lancedb."
    raise MigrationRequiredError(
        f"database '{ref.name}' has schema version {version}, and this version of haiku-rag-lancedb reads "
        f"{SCHEMA_VERSION}. {how}",
        source=ref.name,
    )
