"""The client: one object over one database or a set of them."""

from haiku.rag.client.client import HaikuRAG
from haiku.rag.client.ingest import IngestFailure, IngestResults, IngestStep
from haiku.rag.federation.scope import DatabaseScope
from haiku.rag.models import DocumentImport

__all__ = ["DatabaseScope", "DocumentImport", "HaikuRAG", "IngestFailure", "IngestResults", "IngestStep"]
