"""The error tree.

    HaikuRagError
    ├── AmbiguousDatabaseError        one database is meant and several are covered, or two selectors at once
    ├── UnknownDatabaseError          (KeyError) a name that is not covered
    ├── SourceUnavailableError        a configured database that cannot be opened or read
    ├── StorageError                  what a storage engine reports about one database
    │   ├── MissingDatabaseError      there is no database at the location
    │   ├── MigrationRequiredError    the database has another schema version
    │   ├── TagError                  (ValueError) a tag that is missing, or a tagged entry where none may be
    │   └── ReadOnlyError             a write to a database that was opened for reading
    ├── ConfigError                   (ValueError) the configuration is not valid
    │   └── MissingVariableError      it names an environment variable that is not set
    ├── ConfigMismatchError           databases or configuration disagree about the embedding
    ├── DocumentNotFoundError         (KeyError) a document id that the database does not hold
    ├── DocumentConflictError         (ValueError) a URI or id that another document has
    ├── FilterError                   (ValueError) a filter that cannot be understood
    ├── UnsupportedSourceError        (ValueError) a path, URL or media type that nothing can read
    ├── ConversionError               (ValueError) a document that could not be converted or chunked
    ├── EmbeddingError                an embedder failed, or returned vectors that are not usable
    ├── RerankError                   a reranker failed and `reranking.required` is set
    └── PluginError                   a plugin, or the choice of one, is at fault
        ├── UnknownPluginError        no plugin of that kind has the name
        ├── PluginConflictError       two plugins provide the name
        ├── PluginNotLoadedError      the plugin was selected and could not be loaded
        └── MissingDependencyError    the plugin needs a library that is not installed

Class names are stable. `exit_status` is what the command line ends with; `source` names the database that an
error concerns, where it concerns one.
"""

from typing import ClassVar, Self


class HaikuRagError(Exception):
    """The root: catching it catches everything that haiku-rag itself raises.

    The message says what happened, where, and what to do next; `source` is the name of the one database that the
    error concerns, or None.
    """

    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, source: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.source = source

    def __str__(self) -> str:
        return self.message


class AmbiguousDatabaseError(HaikuRagError):
    """One database is meant and several are covered, or two ways of choosing one were used at once."""

    exit_status = 2


class UnknownDatabaseError(HaikuRagError, KeyError):
    """A database name that the client or the configuration does not cover."""

    exit_status = 2


class SourceUnavailableError(HaikuRagError):
    """A configured database cannot be opened or read. Names the database, never where it is."""


class StorageError(HaikuRagError):
    """A storage engine's report about one database.

    A sentence for a user: what could not be done and why. It never says where a configured database is.
    """


class MissingDatabaseError(StorageError):
    """There is no database at the location. Only `create=True` and `init` make one."""


class MigrationRequiredError(StorageError):
    """The database was written with another schema version."""


class TagError(StorageError, ValueError):
    """A tag does not exist, or a tagged entry was used where only the live database will do."""


class ReadOnlyError(StorageError):
    """A write to a database that was opened for reading only."""


class ConfigError(HaikuRagError, ValueError):
    """The configuration is not valid; the message names each key by its path."""


class MissingVariableError(ConfigError):
    """The configuration names an environment variable that is not set and gives no default."""


class ConfigMismatchError(HaikuRagError):
    """The configuration and a database, or two databases searched together, disagree about the embedding."""


class DocumentNotFoundError(HaikuRagError, KeyError):
    """A document that was asked for or was to be changed does not exist."""

    @classmethod
    def within(cls, source: str, document: str) -> Self:
        """The error for a database that does not hold the document, by what the caller named it with."""
        return cls(f"database '{source}' holds no document '{document}'.", source=source)


class DocumentConflictError(HaikuRagError, ValueError):
    """A document was to take a URI or an id that another document has."""


class FilterError(HaikuRagError, ValueError):
    """A filter that cannot be understood."""


class UnsupportedSourceError(HaikuRagError, ValueError):
    """A path, URL or media type that no installed plugin can read."""


class ConversionError(HaikuRagError, ValueError):
    """A document that could not be read, converted or chunked."""


class EmbeddingError(HaikuRagError):
    """An embedder failed or returned vectors that are not finite or have the wrong shape."""


class RerankError(HaikuRagError):
    """A reranker failed while `reranking.required` was set."""


class PluginError(HaikuRagError):
    """A plugin, or the choice of one, is at fault."""


class UnknownPluginError(PluginError):
    """No installed plugin of the kind has the name."""


class PluginConflictError(PluginError):
    """Two plugins provide one name."""


class PluginNotLoadedError(PluginError):
    """The selected plugin was switched off because it could not be loaded."""


class MissingDependencyError(PluginError):
    """The selected plugin needs a library that is not installed."""
