"""What the commands that look after a database share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from haiku.rag.cli.output import notice
from haiku.rag.cli.progress import waiting
from haiku.rag.cli.runner import run

if TYPE_CHECKING:
    from haiku.rag.client import HaikuRAG

T = TypeVar("T")


def run_long(label: str, work: Callable[[], Awaitable[T]], *, interrupted: str) -> T:
    """Run the work while a terminal shows that it goes on; Ctrl-C says how things stand, and is raised."""
    try:
        with waiting(label):
            return run(work)
    except KeyboardInterrupt:
        notice(f"Interrupted; {interrupted}")
        raise


def run_on(client: HaikuRAG, label: str, work: Callable[[HaikuRAG], Awaitable[T]]) -> T:
    """Run the work on the client's one database, which no interruption leaves half done."""

    async def within() -> T:
        async with client:
            return await work(client)

    name = client.source_names[0]
    return run_long(f"{name}: {label}", within, interrupted=f"database '{name}' is whole, and can be used at once.")
