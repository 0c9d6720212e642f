"""The commands that this package registers."""

from collections.abc import Iterable

from haiku.rag.plugins import CommandRecord, hookimpl

HERE = "haiku.rag.cli.commands"


@hookimpl
def haiku_rag_register_command() -> Iterable[CommandRecord]:
    """Databases, documents, search, and what is configured and installed."""
    yield _record("add", "Store a text")
    yield _record("add-src", "Store files, folders and URLs")
    yield _record("create-index", "Build the indexes of a database again")
    yield _record("delete", "Delete a document")
    yield _record("doctor", "Examine a database, and put right what is safe to")
    yield _record("download-models", "Fetch the models that the configuration names")
    yield _record("get", "Show a document")
    yield _record("history", "List the past states of a database")
    yield _record("info", "Show where a database is, and its sizes")
    yield _record("init", "Create a database")
    yield _record("init-config", "Write an example configuration")
    yield _record("list", "List documents")
    yield _record("migrate", "Take a database to the current schema")
    yield _record("plugins", "Show and check what is installed")
    yield _record("rebuild", "Make the documents of a database anew")
    yield CommandRecord(name="rm", summary="The same as delete", factory=f"{HERE}.delete:command", hidden=True)
    yield _record("search", "Search one database, or several as one")
    yield _record("settings", "Show the configuration in effect, secrets masked")
    yield _record("tag", "Name states of a database, and bring them back")
    yield _record("vacuum", "Keep a database small and fast")


def _record(name: str, summary: str) -> CommandRecord:
    return CommandRecord(name=name, summary=summary, factory=f"{HERE}.{name.replace('-', '_')}:command")
