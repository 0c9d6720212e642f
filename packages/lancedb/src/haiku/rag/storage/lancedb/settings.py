"""The `lancedb` section of the configuration."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from haiku.rag.config.section import NonBlank, StorageSection

Language = Literal[
    "arabic",
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "greek",
    "hungarian",
    "italian",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
]


class LanceDBSettings(StorageSection):
    """Databases by name, and how they are reached.

    Another process's commit is seen within `read_consistency_interval_seconds`. `storage_options` go to the object
    store; `api_key` and `region` are for `db://` locations. `vector_memory_mb` bounds what is held in
    memory, for all databases together. `fts_language` is the language that full text stems words by and whose stop
    words it leaves out: one for all databases, or one for each by name; none by default. It is recorded when a database
    is created, and taken over again by `rebuild --reindex`.
    """

    read_consistency_interval_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    vector_memory_mb: Annotated[int, Field(ge=0)] = 512
    api_key: SecretStr | None = None
    region: NonBlank | None = None
    fts_language: Language | dict[NonBlank, Language] | None = None

    def language_of(self, database: str) -> str | None:
        """The language configured for a database."""
        return self.fts_language.get(database) if isinstance(self.fts_language, dict) else self.fts_language
