"""The command that this package registers, and its error."""

from collections.abc import Iterable

from haiku.rag.plugins import CommandRecord, ErrorRecord, hookimpl


@hookimpl
def haiku_rag_register_command() -> Iterable[CommandRecord]:
    """`haiku-rag eval`."""
    yield CommandRecord(
        name="eval",
        summary="Measure how well databases are searched",
        factory="haiku.rag.evals.commands.group:command",
        extra="evals",
    )


@hookimpl
def haiku_rag_register_error() -> Iterable[ErrorRecord]:
    """What cannot be measured."""
    yield ErrorRecord(name="eval", summary="Something cannot be measured", factory="haiku.rag.evals.errors:EvalError")
