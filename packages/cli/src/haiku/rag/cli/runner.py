"""The one place where asynchronous work is started."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run the work to its end. Ctrl-C cancels it, lets it clean up, and is raised."""
    return anyio.run(work, backend="asyncio")
