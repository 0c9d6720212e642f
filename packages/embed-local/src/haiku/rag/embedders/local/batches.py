"""How much is in memory at once: portions of texts to tokenise, batches of windows to run."""

from collections.abc import Iterable, Iterator, Sequence

from haiku.rag.embedders.local.tokens import Window, segments

PORTION_PIECES = 256
PORTION_CHARACTERS = 250_000
BATCH_SEQUENCES = 8
BATCH_TOKENS = 1024
"""More at once is no faster on a few cores, and costs memory that the runtime keeps."""


def portions(texts: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    """The texts' segments, each with the number of its text, in portions of bounded size."""
    portion: list[tuple[int, str]] = []
    characters = 0
    for number, text in enumerate(texts):
        for segment in segments(text):
            portion.append((number, segment))
            characters += len(segment)
            if len(portion) >= PORTION_PIECES or characters >= PORTION_CHARACTERS:
                yield portion
                portion, characters = [], 0
    if portion:
        yield portion


def batches(windows: Iterable[Window]) -> list[Sequence[Window]]:
    """The windows, shortest first, in batches of at most `BATCH_SEQUENCES` and `BATCH_TOKENS`, padding included."""
    found: list[list[Window]] = []
    for window in sorted(windows, key=lambda window: len(window.ids)):
        length = len(window.ids)
        if not found or len(found[-1]) >= BATCH_SEQUENCES or (len(found[-1]) + 1) * length > BATCH_TOKENS:
            found.append([])
        found[-1].append(window)
    return list(found)
