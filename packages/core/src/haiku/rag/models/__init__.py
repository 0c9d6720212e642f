"""The data that goes in and comes out: documents, items, chunks and results."""

from haiku.rag.models.documents import Chunk, Document, DocumentImport, DocumentItem, ParsedDocument
from haiku.rag.models.identity import EmbeddingIdentity
from haiku.rag.models.rebuild import RebuildMode, RebuildStep
from haiku.rag.models.report import DatabaseReport, DatabaseStatus, ResultReport, SearchReport
from haiku.rag.models.results import Provenance, SearchResult, SearchResults, SearchType
from haiku.rag.models.upkeep import UpkeepReport, UpkeepStep

__all__ = [
    "Chunk",
    "DatabaseReport",
    "DatabaseStatus",
    "Document",
    "DocumentImport",
    "DocumentItem",
    "EmbeddingIdentity",
    "ParsedDocument",
    "Provenance",
    "RebuildMode",
    "RebuildStep",
    "ResultReport",
    "SearchReport",
    "SearchResult",
    "SearchResults",
    "SearchType",
    "UpkeepReport",
    "UpkeepStep",
]
