"""What the contract's tests share."""

from collections.abc import Iterator

import pytest

from .world import World


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A server and an embedder of this test's own."""
    made = World(request.node.nodeid)
    yield made
    made.server.states.clear()
