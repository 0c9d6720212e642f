"""The heavy libraries, imported when they are first needed."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from haiku.rag.errors import MissingDependencyError, RerankError
from haiku.rag.plugins.messages import missing_dependency

NAME = "sentence-transformers"


def require_libraries() -> None:
    """`MissingDependencyError` where sentence-transformers is not installed. Imports nothing."""
    if find_spec("sentence_transformers") is None or find_spec("huggingface_hub") is None:
        raise MissingDependencyError(missing_dependency("reranker", NAME, NAME, "rerank-sentence-transformers"))


def library(name: str) -> Any:
    """The third-party module `name`, imported now; `RerankError` where that fails."""
    try:
        return import_module(name)
    except ImportError as error:
        text = f"reranker '{NAME}' needs {name}, which is installed and cannot be imported: {error}."
        raise RerankError(text) from error
