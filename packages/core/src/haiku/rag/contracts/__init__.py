"""What core asks of plugins: one protocol a kind, with shapes, units and errors in the docstrings."""

from haiku.rag.contracts.candidates import CANDIDATE_SCHEMA, candidate_table, empty_candidates, merged_candidates
from haiku.rag.contracts.conversion import Chunker, Converter, Source, SourceContent, TokenCounter
from haiku.rag.contracts.downloads import Downloading, DownloadStep
from haiku.rag.contracts.embedder import Embedder, LanguageBound
from haiku.rag.contracts.filter_values import check_filter, kind_of, metadata_value, moment_of
from haiku.rag.contracts.filters import And, Comparison, Filter, Not, Or
from haiku.rag.contracts.fusion import Fusion, FusionContext
from haiku.rag.contracts.health import HealthCheck
from haiku.rag.contracts.maintenance import (
    Capability,
    CheckedDatabase,
    Finding,
    HistoricDatabase,
    HistoryEntry,
    MigratingStorage,
    Migration,
    RebuiltDatabase,
    TaggedDatabase,
    TagInfo,
    UpkeepDatabase,
)
from haiku.rag.contracts.reranker import RerankCandidate, Reranker
from haiku.rag.contracts.storage import (
    CandidateQuery,
    Database,
    DatabaseInfo,
    DatabaseRef,
    DocumentWrite,
    FederatedStorage,
    OpenMode,
    Storage,
)

__all__ = [
    "CANDIDATE_SCHEMA",
    "And",
    "CandidateQuery",
    "Capability",
    "CheckedDatabase",
    "Chunker",
    "Comparison",
    "Converter",
    "Database",
    "DatabaseInfo",
    "DatabaseRef",
    "DocumentWrite",
    "DownloadStep",
    "Downloading",
    "Embedder",
    "FederatedStorage",
    "Filter",
    "Finding",
    "Fusion",
    "FusionContext",
    "HealthCheck",
    "HistoricDatabase",
    "HistoryEntry",
    "LanguageBound",
    "MigratingStorage",
    "Migration",
    "Not",
    "OpenMode",
    "Or",
    "RebuiltDatabase",
    "RerankCandidate",
    "Reranker",
    "Source",
    "SourceContent",
    "Storage",
    "TagInfo",
    "TaggedDatabase",
    "TokenCounter",
    "UpkeepDatabase",
    "candidate_table",
    "check_filter",
    "empty_candidates",
    "kind_of",
    "merged_candidates",
    "metadata_value",
    "moment_of",
]
