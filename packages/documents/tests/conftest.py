"""What the tests of this package share."""

from collections.abc import Callable

import pytest

from haiku.rag.contracts import SourceContent


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def content() -> Callable[..., SourceContent]:
    """Makes a source's content from bytes, or from text as UTF-8."""

    def make(data: bytes | str, name: str = "file.txt", **known: str) -> SourceContent:
        raw = data.encode() if isinstance(data, str) else data
        return SourceContent(uri=f"file:///{name}", name=name, data=raw, **known)

    return make
