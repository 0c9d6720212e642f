"""Which fusion ranks a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from haiku.rag.plugins import FusionRecord

if TYPE_CHECKING:
    from haiku.rag.contracts import Fusion
    from haiku.rag.federation.request import SearchRequest
    from haiku.rag.federation.session import Session


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A fusion with its name and its record."""

    name: str
    record: FusionRecord
    fusion: Fusion

    @classmethod
    def of(cls, session: Session, request: SearchRequest, *, databases: int) -> Strategy:
        """The fusion asked for or configured, else reciprocal rank for hybrid search in one database, else cosine."""
        default = "rrf" if databases == 1 and request.search_type == "hybrid" else "cosine"
        name = request.fusion or session.config.search.fusion or default
        record = session.kernel.find(FusionRecord.kind, name).record
        assert isinstance(record, FusionRecord)  # the kernel checks each record's type when it takes it
        fusion: Fusion = session.kernel.create(FusionRecord.kind, name, session.config)
        return cls(name=name, record=record, fusion=fusion)

    def reads_shares(self, request: SearchRequest) -> bool:
        """Whether it reads `keyword_share` in such a search."""
        if request.search_type == "vector" or self.record.keyword_share == "never":
            return False
        return self.record.keyword_share == "always" or request.search_type == "fts"
