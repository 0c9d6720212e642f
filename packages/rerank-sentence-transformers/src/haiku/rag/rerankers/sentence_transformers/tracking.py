"""How far a fetch is, told by the bars that the hub's client draws, and how it is stopped."""

from typing import Any, ClassVar, Self

from haiku.rag.errors import RerankError


class FetchStoppedError(RerankError):
    """The fetch was stopped by whoever had begun it."""

    def __init__(self) -> None:
        super().__init__("fetching the model was broken off.")


class Tracker:
    """Counts the bytes of one fetch. Its `bar` is the class to give to the hub's client as its `tqdm_class`."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self._whole = 0
        self._stopped = False
        self.bar = type("TrackedBar", (Bar,), {"tracker": self})

    def expect(self, total: int) -> None:
        """So many bytes are missing."""
        self.total = total

    def count(self, done: int) -> None:
        """At least so many bytes of a file have come in. `FetchStoppedError` once it is to stop."""
        if self._stopped:
            raise FetchStoppedError
        self.done = min(max(self.done, self._whole + done), self.total)

    def count_whole(self, size: int) -> None:
        """A file of so many bytes is there."""
        self._whole += size
        self.count(0)

    def stop(self) -> None:
        """Let the next bytes that come in end the fetch."""
        self._stopped = True


class Bar:
    """A progress bar as the hub's client uses it, that draws nothing.

    There are several: of files, and for a file of bytes received and of bytes written. Of bytes the furthest counts.
    """

    tracker: Tracker
    format_dict: ClassVar[dict[str, Any]] = {"rate": None}

    def __init__(self, *_: object, total: float | None = None, initial: float = 0, unit: str = "it", **__: Any) -> None:
        self.total = total
        self.n = initial
        self._of_bytes = unit == "B"

    def update(self, n: float | None = 1) -> None:
        """So much more has come in."""
        self.n += n or 0
        self.tracker.count(int(self.n) if self._of_bytes else 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """There is nothing to close."""

    def __getattr__(self, name: str) -> Any:
        """Every other method of a bar is about drawing."""
        if name.startswith("_"):
            raise AttributeError(name)
        return _draw_nothing


def _draw_nothing(*_: object, **__: object) -> None:
    """Nothing is drawn."""
