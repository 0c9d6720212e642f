# ruff: noqa: D102 - a test's name is its documentation
"""What an embedder or a reranker keeps whose model can be fetched.

1. Core can tell that it downloads.
2. Steps are `DownloadStep`s whose `done` never falls within a name, and never passes `total`; a name's last one reaches
   it.
3. Called again it has nothing to do.
4. Broken off after any step, it goes on or begins anew when it is called again, to the same end.
5. Another object of the same configuration finds what was fetched.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from itertools import pairwise

import pytest

from haiku.rag.contracts.downloads import Downloading, DownloadStep


class DownloadingContract:
    """Override `make`: a function that gives a new object each time; nothing is fetched yet when a test begins."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The event loop of these tests."""
        return "asyncio"

    @pytest.fixture
    def make(self) -> Callable[[], Downloading]:
        """What makes the object under test."""
        raise NotImplementedError("override the fixture 'make'")  # pragma: no cover - a subclass overrides it

    def test_1_core_can_tell_that_it_downloads(self, make: Callable[[], Downloading]) -> None:
        assert isinstance(make(), Downloading)

    async def test_2_the_steps_lead_to_the_end(self, make: Callable[[], Downloading]) -> None:
        steps = await _all(make())
        assert steps
        for name in {step.name for step in steps}:
            of_it = [step for step in steps if step.name == name]
            assert all(earlier.done <= later.done for earlier, later in pairwise(of_it))
            assert all(step.total is None or step.done <= step.total for step in of_it)
            assert of_it[-1].total in (None, of_it[-1].done)

    async def test_3_called_again_it_has_nothing_to_do(self, make: Callable[[], Downloading]) -> None:
        model = make()
        await _all(model)
        assert await _all(model) == []

    @pytest.mark.parametrize("count", [1, 2])
    async def test_4_broken_off_it_reaches_the_same_end(self, make: Callable[[], Downloading], count: int) -> None:
        await _some(make(), count)
        await _all(make())
        assert await _all(make()) == []

    async def test_5_another_object_finds_what_was_fetched(self, make: Callable[[], Downloading]) -> None:
        await _all(make())
        assert await _all(make()) == []


async def _all(model: Downloading) -> list[DownloadStep]:
    return [DownloadStep.model_validate(step, strict=True) async for step in model.downloads()]


async def _some(model: Downloading, count: int) -> None:
    """Take so many steps, and break off."""
    steps: AsyncGenerator[DownloadStep, None] = model.downloads()
    async with aclosing(steps):
        for _ in range(count):
            await anext(steps, None)
