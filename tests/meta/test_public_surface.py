"""The public modules of core, and that what they promise is there and documented."""

import importlib
import inspect

import pytest

PUBLIC = ["client", "config", "contracts", "errors", "federation", "fusion", "models", "plugins", "testing"]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    module = importlib.import_module(f"haiku.rag.{name}")
    assert sorted(module.__all__, key=str.lower) == sorted({*module.__all__}, key=str.lower)
    for public in module.__all__:
        value = getattr(module, public)
        assert not inspect.isclass(value) or inspect.getdoc(value)
