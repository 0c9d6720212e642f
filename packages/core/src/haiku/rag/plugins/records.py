"""Records: what a register hook yields, one frozen dataclass a kind.

A record is light: it says what a plugin offers and names, as `"package.module:object"`, the factory that makes it.
The factory is imported when the name is selected, and not before. New fields always come with a default.
"""

import re
from dataclasses import dataclass, field
from typing import ClassVar, Literal

FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@dataclass(frozen=True, kw_only=True)
class PluginRecord:
    """What every record has.

    `name` is what a user writes in the configuration; `summary` is one line for listings; `extra` is the extra of
    `haiku-rag-core` that installs what the factory imports, and `needs` the library it stands for, for the message
    when it is missing.
    """

    kind: ClassVar[str] = ""

    name: str
    summary: str
    factory: str
    extra: str = ""
    needs: str = ""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError(f"a {type(self).__name__} has a blank name")
        if not FACTORY.fullmatch(self.factory):
            raise ValueError(
                f"{type(self).__name__} {self.name!r} has the factory {self.factory!r}: write 'package.module:object'"
            )


@dataclass(frozen=True, kw_only=True)
class StorageRecord(PluginRecord):
    """A storage engine. Factory: `(AppConfig) -> haiku.rag.contracts.Storage`.

    `sections` are the configuration sections whose `databases` it opens; `schemes` the URI schemes that their
    locations may have, for listings; `suffixes` the endings by which it is given a path that has no entry.
    `default_location` is the name, below `storage.data_dir`, of the database that exists when nothing is configured;
    `standalone=True` says that the engine can serve then. `searches_many=True` says that the storage has
    `search_many`. `capabilities` are the groups of `haiku.rag.contracts.maintenance` that it offers: `upkeep`,
    `checks`, `history`, `tags`, `rebuild`, `migrations`.
    """

    kind: ClassVar[str] = "storage"

    sections: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    default_location: str = ""
    standalone: bool = False
    searches_many: bool = False
    capabilities: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class EmbedderRecord(PluginRecord):
    """An embedder. Factory: `(AppConfig) -> haiku.rag.contracts.Embedder`; constructing it loads no model.

    `standalone=True` says that it works without configuration, service or download.
    """

    kind: ClassVar[str] = "embedder"

    modalities: frozenset[str] = frozenset({"text"})
    standalone: bool = False


@dataclass(frozen=True, kw_only=True)
class RerankerRecord(PluginRecord):
    """A reranker. Factory: `(AppConfig) -> haiku.rag.contracts.Reranker`."""

    kind: ClassVar[str] = "reranker"


@dataclass(frozen=True, kw_only=True)
class FusionRecord(PluginRecord):
    """A fusion strategy. Factory: `(AppConfig) -> haiku.rag.contracts.Fusion`.

    `compares_similarity=False` says that it does not compare similarities across databases, so that it can merge those
    of different embedding models. `keyword_share` says in which searches it reads the column of that name, which
    storage engines look up statistics for: `"never"`, `"fts"` for full text alone, or `"always"` where there are words.
    """

    kind: ClassVar[str] = "fusion"

    compares_similarity: bool = True
    keyword_share: Literal["never", "fts", "always"] = "always"


@dataclass(frozen=True, kw_only=True)
class ErrorRecord(PluginRecord):
    """An error type. The factory is the class itself, derived from `HaikuRagError`.

    `exit_status` is what the command line ends with, whatever the class says. `names_location=True` says that
    its text may say where a database is: then it reaches a caller only for a database whose path the caller gave.
    """

    kind: ClassVar[str] = "error"

    exit_status: int = 1
    names_location: bool = False


@dataclass(frozen=True, kw_only=True)
class ConverterRecord(PluginRecord):
    """A converter. Factory: `(AppConfig) -> haiku.rag.contracts.Converter`.

    `media_types`, `suffixes` (with the dot, lower case) and `names` (whole file names, lower case) say what it reads.
    """

    kind: ClassVar[str] = "converter"

    media_types: frozenset[str] = frozenset()
    suffixes: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def reads(self, file_name: str) -> bool:
        """Whether it reads a file of this name."""
        suffix = "." + file_name.rpartition(".")[2].lower() if "." in file_name else ""
        return suffix in self.suffixes or file_name.lower() in self.names


@dataclass(frozen=True, kw_only=True)
class ChunkerRecord(PluginRecord):
    """A chunker. Factory: `(AppConfig) -> haiku.rag.contracts.Chunker`."""

    kind: ClassVar[str] = "chunker"

    standalone: bool = False


@dataclass(frozen=True, kw_only=True)
class SourceRecord(PluginRecord):
    """A place that documents come from. Factory: `(AppConfig) -> haiku.rag.contracts.Source`."""

    kind: ClassVar[str] = "source"

    schemes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AnswererRecord(PluginRecord):
    """What answers questions. Factory: `(AppConfig) -> object` with an asynchronous `ask`."""

    kind: ClassVar[str] = "answerer"


@dataclass(frozen=True, kw_only=True)
class CommandRecord(PluginRecord):
    """A command of the command line. The factory is the `click.Command` itself, imported when it is invoked."""

    kind: ClassVar[str] = "command"

    hidden: bool = False


@dataclass(frozen=True, kw_only=True)
class McpToolRecord(PluginRecord):
    """A tool of the MCP server. The factory is the tool's function. `writes=True` keeps it out of read-only servers."""

    kind: ClassVar[str] = "mcp_tool"

    writes: bool = False


@dataclass(frozen=True, kw_only=True)
class ScreenRecord(PluginRecord):
    """A screen of the terminal interface. The factory is the screen's class."""

    kind: ClassVar[str] = "screen"


@dataclass(frozen=True, kw_only=True)
class ConfigSectionRecord(PluginRecord):
    """A section of the configuration. The factory is its pydantic model, a `haiku.rag.config.Section`.

    `secrets` names keys whose values `settings` masks beside those whose names already say so.
    """

    kind: ClassVar[str] = "config_section"

    secrets: tuple[str, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class HealthCheckRecord(PluginRecord):
    """A check for `doctor`. The factory is the check's function, a `haiku.rag.contracts.HealthCheck`."""

    kind: ClassVar[str] = "health_check"


RECORD_TYPES: dict[str, type[PluginRecord]] = {
    record.kind: record
    for record in (
        StorageRecord,
        EmbedderRecord,
        RerankerRecord,
        FusionRecord,
        ErrorRecord,
        ConverterRecord,
        ChunkerRecord,
        SourceRecord,
        AnswererRecord,
        CommandRecord,
        McpToolRecord,
        ScreenRecord,
        ConfigSectionRecord,
        HealthCheckRecord,
    )
}
