"""Several operations at once."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import anyio

T = TypeVar("T")
One = TypeVar("One")
Two = TypeVar("Two")


async def together(one: Callable[[], Awaitable[One]], two: Callable[[], Awaitable[Two]]) -> tuple[One, Two]:
    """Run both, as `all_together` does."""
    first, second = await all_together((one, two))
    return first, second


async def all_together(operations: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
    """Run all, and give their results in order; when one fails the others are cancelled and awaited.

    The failure is raised as it is, never in a group. Cancellation ends all and passes through.
    """
    results: dict[int, Any] = {}
    failures: list[Exception] = []

    async def run(number: int, operation: Callable[[], Awaitable[Any]]) -> None:
        try:
            results[number] = await operation()
        except Exception as error:  # noqa: BLE001 - it is raised below, once the others have ended
            failures.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for number, operation in enumerate(operations[:-1]):
            group.start_soon(run, number, operation)
        for number, operation in list(enumerate(operations))[-1:]:
            await run(number, operation)
    if failures:
        raise failures[0]
    return [results[number] for number in range(len(operations))]
