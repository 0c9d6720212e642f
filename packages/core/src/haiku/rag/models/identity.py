"""What makes two vectors comparable."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class EmbeddingIdentity:
    """The embedding that a database was written with.

    The query prefix is not part of it: it changes queries, not what is stored.
    """

    provider: str
    model: str
    dimension: int
    document_prefix: str = ""

    def describe(self) -> str:
        """One phrase for messages, such as `local/all-MiniLM-L6-v2, 384 dimensions`."""
        prefix = f", document prefix {self.document_prefix!r}" if self.document_prefix else ""
        return f"{self.provider}/{self.model}, {self.dimension} dimensions{prefix}"
