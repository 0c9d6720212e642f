# ruff: noqa: D102 - a test's name is its documentation
"""What a source keeps.

1. A location's documents are found as URIs with a scheme, each once, in the same order every time.
2. Each can be fetched: its bytes, a name, and the URI as its own.
3. Fetching again gives the same.
4. A document's own URI is a location that holds just that document.
5. What is not there is an `UnsupportedSourceError`, from finding and from fetching.
"""

import pytest

from haiku.rag.contracts.conversion import Source
from haiku.rag.errors import UnsupportedSourceError


class SourceContract:
    """Override `source`, `location` (somewhere with at least two documents) and `missing`."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The event loop of these tests."""
        return "asyncio"

    @pytest.fixture
    def source(self) -> Source:
        """The source under test."""
        raise NotImplementedError("override the fixture 'source'")  # pragma: no cover - a subclass overrides it

    @pytest.fixture
    def location(self) -> str:
        """Where at least two documents are."""
        raise NotImplementedError("override the fixture 'location'")  # pragma: no cover - a subclass overrides it

    @pytest.fixture
    def missing(self) -> str:
        """Where nothing is."""
        raise NotImplementedError("override the fixture 'missing'")  # pragma: no cover - a subclass overrides it

    async def test_1_documents_are_found_once_in_the_same_order(self, source: Source, location: str) -> None:
        uris = await _found(source, location)
        assert len(uris) >= 2
        assert len(set(uris)) == len(uris)
        assert all(":" in uri for uri in uris)
        assert await _found(source, location) == uris

    async def test_2_each_can_be_fetched(self, source: Source, location: str) -> None:
        for uri in await _found(source, location):
            content = await source.fetch(uri)
            assert content.uri == uri
            assert content.name
            assert content.data

    async def test_3_fetching_again_gives_the_same(self, source: Source, location: str) -> None:
        uri = (await _found(source, location))[0]
        assert await source.fetch(uri) == await source.fetch(uri)

    async def test_4_a_documents_uri_holds_just_that_document(self, source: Source, location: str) -> None:
        uri = (await _found(source, location))[0]
        assert await _found(source, uri) == [uri]

    async def test_5_what_is_not_there_is_said_so(self, source: Source, missing: str) -> None:
        with pytest.raises(UnsupportedSourceError):
            await _found(source, missing)
        with pytest.raises(UnsupportedSourceError):
            await source.fetch(missing)


async def _found(source: Source, location: str) -> list[str]:
    return [uri async for uri in source.discover(location)]
