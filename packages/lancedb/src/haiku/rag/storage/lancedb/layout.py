"""Which tables make up a database: its generations, one of them current, as the settings table tells."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Self, get_args

import pyarrow as pa

from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import MigrationRequiredError, StorageError
from haiku.rag.models import EmbeddingIdentity, UpkeepReport
from haiku.rag.storage.lancedb.schema import (
    CHUNKS,
    DOCUMENTS,
    ITEMS,
    METRIC,
    PICTURES,
    SCHEMA_VERSION,
    SETTINGS,
    SETTINGS_SCHEMA,
)

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
        """A row of the settings table. `ValueError`, `TypeError` or `KeyError` for one that nothing can be made of."""
        identity = EmbeddingIdentity(**json.loads(row["identity"]))
        names = json.loads(row["tables"])
        tables = {part: str(names[part]) for part in PARTS}
        if not (row["state"] in get_args(State) and identity.dimension > 0 and len({*tables.values()}) == len(PARTS)):
            raise ValueError("a row of no generation")
        return cls(**{**row, "identity": identity, "tables": tables, "upkeep": _report(row["upkeep"])})

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

    `MigrationRequiredError` where one has another schema, `StorageError` where one cannot be understood.
    """
    rows = (await settings.query().to_arrow()).to_pylist()
    return sorted([_layout(row, ref) for row in rows], key=lambda layout: layout.generation)


def _layout(row: dict[str, Any], ref: DatabaseRef) -> Layout:
    try:
        check_version(row["schema_version"], ref)
        return Layout.from_row(row)
    except (ValueError, TypeError, KeyError):
        pass
    raise settings_lost(ref)


def _report(text: str | None) -> UpkeepReport | None:
    """The outcome of an upkeep; None for what is no such report, since nothing but its being shown depends on it."""
    try:
        return None if text is None else UpkeepReport.model_validate_json(text)
    except ValueError:
        return None


def settings_lost(ref: DatabaseRef) -> StorageError:
    """The error where tables hold rows, and nothing says any more which of them are the database."""
    return StorageError(
        f"the settings of database '{ref.name}' are missing or damaged, so its tables cannot be told apart. Nothing "
        f"was changed. Bring its folder '{SETTINGS}.lance' back from a backup.",
        source=ref.name,
    )


def current_layout(layouts: list[Layout]) -> Layout | None:
    """The generation that is read and written, sealed or not.

    A change of generations under a broken seal leaves a second one for a moment: that bears the older date.
    """
    found = [layout for layout in layouts if layout.state in ("current", "sealed")]
    return max(found, key=lambda layout: layout.changed_at, default=None)


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
