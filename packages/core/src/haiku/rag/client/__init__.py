"""The client: one object over one database or a set of them."""

from haiku.rag.client.client import HaikuRAG
from haiku.rag.client.doctor import DoctorReport, examine
from haiku.rag.client.downloading import ModelDownload, download_models
from haiku.rag.client.ingest import IngestFailure, IngestResults, IngestStep
from haiku.rag.client.migrating import migrate, pending_migrations
from haiku.rag.federation.scope import DatabaseScope
from haiku.rag.models import DocumentImport, RebuildMode, RebuildStep

__all__ = [
    "DatabaseScope",
    "DoctorReport",
    "DocumentImport",
    "HaikuRAG",
    "IngestFailure",
    "IngestResults",
    "IngestStep",
    "ModelDownload",
    "RebuildMode",
    "RebuildStep",
    "download_models",
    "examine",
    "migrate",
    "pending_migrations",
]
