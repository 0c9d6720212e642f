"""The one place where asynchronous work is started."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from haiku.rag.cli.output import plugins_speaking

T = TypeVar("T")


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run the work to its end. Ctrl-C cancels it, lets it clean up, and is raised.

    What is printed meanwhile goes to standard error: print the outcome.
    """
    with plugins_speaking():
        return anyio.run(work, backend="asyncio")
