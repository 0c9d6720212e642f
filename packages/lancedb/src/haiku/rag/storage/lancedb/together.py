"""Two operations at once."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

One = TypeVar("One")
Two = TypeVar("Two")


async def together(one: Callable[[], Awaitable[One]], two: Callable[[], Awaitable[Two]]) -> tuple[One, Two]:
    """Run both; when one fails the other is cancelled and awaited.

    The failure is raised as it is, never in a group. Cancellation ends both and passes through.
    """
    results: dict[int, Any] = {}
    failures: list[Exception] = []

    async def run(number: int, operation: Callable[[], Awaitable[Any]]) -> None:
        try:
            results[number] = await operation()
        except Exception as error:  # noqa: BLE001 - it is raised below, once the other has ended
            failures.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(run, 0, one)
        await run(1, two)
    if failures:
        raise failures[0]
    return results[0], results[1]
