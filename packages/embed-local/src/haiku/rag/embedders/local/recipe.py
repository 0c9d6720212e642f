"""What an embedder does with a model: its name, prefixes, pooling and limits."""

from dataclasses import dataclass
from typing import Literal

from haiku.rag.errors import EmbeddingError

Pooling = Literal["mean", "cls", "last"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings of one embedder.

    `dimension` is None where only the model itself can tell. `max_tokens` counts a text's own tokens; `positions` is
    the longest sequence, special tokens and prefix included, that the model accepts at all, where it is known.
    """

    provider: str
    model: str
    dimension: int | None
    query_prefix: str = ""
    document_prefix: str = ""
    pooling: Pooling = "mean"
    normalize: bool = True
    max_tokens: int
    positions: int | None = None

    def room(self, overhead: int) -> int:
        """How many of a text's tokens fit beside `overhead` special and prefix tokens. EmbeddingError if none do."""
        room = self.max_tokens if self.positions is None else min(self.max_tokens, self.positions - overhead)
        if room < 1:
            raise EmbeddingError(
                f"embedder '{self.provider}': the prefix leaves no room for text, because '{self.model}' reads "
                f"{self.positions} tokens and {overhead} are taken. Shorten query_prefix and document_prefix in "
                "embeddings.model."
            )
        return room
