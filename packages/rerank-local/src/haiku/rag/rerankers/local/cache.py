"""What was read of passages, kept for later queries within a bound."""

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b
from threading import Lock

from haiku.rag.rerankers.local.compact import CompactPassage


def key_of(text: str) -> bytes:
    """A text's key, which says nothing about where the text is from: the same passage in two databases is read once."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class PassageCache:
    """Passages by key, at most `limit` bytes of them: those that were asked for last. For any thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._passages: OrderedDict[bytes, CompactPassage] = OrderedDict()
        self._held = 0

    @property
    def nbytes(self) -> int:
        """What is held."""
        return self._held

    def __len__(self) -> int:
        return len(self._passages)

    def found(self, keys: Iterable[bytes]) -> dict[bytes, CompactPassage]:
        """Those of the passages that are held; they now count as the ones asked for last."""
        with self._lock:
            held = [key for key in keys if key in self._passages]
            for key in held:
                self._passages.move_to_end(key)
            return {key: self._passages[key] for key in held}

    def put(self, key: bytes, passage: CompactPassage) -> None:
        """Keep the passage, and drop others for it. One that is larger than the bound is not kept."""
        with self._lock:
            self._drop(key)
            if passage.nbytes > self._limit:
                return
            self._passages[key] = passage
            self._held += passage.nbytes
            while self._held > self._limit:
                self._drop(next(iter(self._passages)))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._passages.clear()
            self._held = 0

    def _drop(self, key: bytes) -> None:
        passage = self._passages.pop(key, None)
        self._held -= 0 if passage is None else passage.nbytes
