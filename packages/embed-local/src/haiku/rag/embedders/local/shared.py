"""Values that everybody in the process shares, and that go with the last who holds them."""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Shared(Generic[T]):
    """Values by key. One that nobody holds any more is forgotten, and made again when it is next asked for."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: WeakValueDictionary[Hashable, T] = WeakValueDictionary()

    def __call__(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of `key`, made if there is none. What `make` raises comes through."""
        with self._lock:
            value = self._values.get(key)
            if value is None:
                value = self._values[key] = make()
            return value
