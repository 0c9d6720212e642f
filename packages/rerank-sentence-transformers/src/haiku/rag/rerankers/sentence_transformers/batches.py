"""How passages are put together for one run of the model."""

from collections.abc import Sequence


def length_sorted(texts: Sequence[str], size: int) -> list[list[int]]:
    """The texts' indices, longest first, in batches of at most `size`, so that little is padded.

    The longest batch comes first, so that one that does not fit into memory fails at once.
    """
    order = sorted(range(len(texts)), key=lambda index: -len(texts[index].encode("utf-8", "replace")))
    return [order[start : start + size] for start in range(0, len(order), size)]
