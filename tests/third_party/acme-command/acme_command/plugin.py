"""What acme-command registers."""

from collections.abc import Iterable

from haiku.rag.plugins import CommandRecord, hookimpl


@hookimpl
def haiku_rag_register_command() -> Iterable[CommandRecord]:
    """The command `acme-greet`."""
    yield CommandRecord(name="acme-greet", summary="Greet somebody", factory="acme_command.greeting:greet")
