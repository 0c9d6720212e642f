"""Third-party libraries, imported when the model is loaded."""

from importlib import import_module
from typing import Any

from haiku.rag.errors import MissingDependencyError


def imported(name: str) -> Any:
    """The library. MissingDependencyError, which names the extra, where it cannot be imported."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"embedder 'multilingual' needs {name}, which cannot be imported ({error}). Install it with: "
            "pip install 'haiku-rag-core[multilingual]'."
        ) from error
