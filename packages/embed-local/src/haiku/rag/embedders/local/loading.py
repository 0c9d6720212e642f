"""Loading something once, when it is first needed, whichever thread comes first."""

from collections.abc import Callable
from importlib import import_module
from threading import Lock
from typing import Any, Generic, TypeVar

from haiku.rag.errors import MissingDependencyError

T = TypeVar("T")


class Once(Generic[T]):
    """A value that is made by `load` on the first call and kept until `clear`. A failed load is tried again."""

    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._lock = Lock()
        self._value: T | None = None

    def __call__(self) -> T:
        """The value, loaded if it is not there yet. What `load` raises comes through."""
        with self._lock:
            if self._value is None:
                self._value = self._load()
            return self._value

    def clear(self) -> None:
        """Forget the value; the next call loads again."""
        with self._lock:
            self._value = None


def library(name: str) -> Any:
    """The third-party library `name`, imported now."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"the embedders 'local' and 'onnx' need {name}, which cannot be imported ({error}). "
            "Install it with: pip install 'haiku-rag-core[embed-local]'."
        ) from error
