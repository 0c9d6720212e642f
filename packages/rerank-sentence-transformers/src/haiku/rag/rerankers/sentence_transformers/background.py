"""A blocking call in a thread of its own."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")
PAUSE = 0.02
"""Seconds between two looks at whether the call has ended."""


class Background(Generic[T]):
    """A call that begins now. Whoever waits for it can be cancelled; the call itself goes on.

    It may be waited for from any event loop, by many at once, and does not keep the process from ending.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._future: Future[T] = Future()
        Thread(target=self._run, args=(work,), name=type(self).__name__, daemon=True).start()

    def _run(self, work: Callable[[], T]) -> None:
        try:
            self._future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self._future.set_exception(error)

    @property
    def ended(self) -> bool:
        """Whether the call has returned or raised."""
        return self._future.done()

    async def result(self) -> T:
        """What it returns, or raises, once it has ended."""
        await self.end()
        return self._future.result()

    async def end(self) -> None:
        """Wait until it has ended, however."""
        while not self.ended:  # noqa: ASYNC110 - an event belongs to one event loop, and this may be awaited from any
            await anyio.sleep(PAUSE)
