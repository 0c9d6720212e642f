"""Every hook, with its signature: what core asks plugins, and when.

Register hooks describe and yield records; decide hooks answer with the first result that is not None, core's own
answer last; transform hooks run when `hooks:` in the configuration lists the plugin, in that order; observe hooks
are told and cannot change anything; lifespan hooks are held while a client is open.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from haiku.rag.plugins.marks import hookspec

if TYPE_CHECKING:
    from haiku.rag.client import HaikuRAG
    from haiku.rag.config import AppConfig
    from haiku.rag.contracts import DatabaseRef
    from haiku.rag.errors import HaikuRagError
    from haiku.rag.federation import DatabaseScope, ScopeSelector, SearchPlan, SearchRequest
    from haiku.rag.models import Document, DocumentImport, SearchReport, SearchResults
    from haiku.rag.plugins import (
        AnswererRecord,
        ChunkerRecord,
        CommandRecord,
        ConfigSectionRecord,
        ConverterRecord,
        EmbedderRecord,
        ErrorRecord,
        FusionRecord,
        HealthCheckRecord,
        McpToolRecord,
        RerankerRecord,
        ScreenRecord,
        SourceRecord,
        StorageRecord,
    )


@hookspec
def haiku_rag_register_storage() -> Iterable[StorageRecord]:
    """Storage engines. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_embedder() -> Iterable[EmbedderRecord]:
    """Embedders, chosen by `embeddings.model.provider`. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_reranker() -> Iterable[RerankerRecord]:
    """Rerankers, chosen by `reranking.model.provider`. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_fusion() -> Iterable[FusionRecord]:
    """Fusion strategies, chosen by `search.fusion` or per call. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_error() -> Iterable[ErrorRecord]:
    """Error types with their exit status. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_converter() -> Iterable[ConverterRecord]:
    """Converters, chosen by media type or suffix. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_chunker() -> Iterable[ChunkerRecord]:
    """Chunkers, chosen by `processing.chunker`. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_source() -> Iterable[SourceRecord]:
    """Places that documents come from, chosen by URI scheme. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_answerer() -> Iterable[AnswererRecord]:
    """What answers questions. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_command() -> Iterable[CommandRecord]:
    """Commands of the command line. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_mcp_tool() -> Iterable[McpToolRecord]:
    """Tools of the MCP server. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_screen() -> Iterable[ScreenRecord]:
    """Screens of the terminal interface. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_config_section() -> Iterable[ConfigSectionRecord]:
    """Sections of the configuration. Called once, when plugins are loaded."""
    return ()


@hookspec
def haiku_rag_register_health_check() -> Iterable[HealthCheckRecord]:
    """Checks for `doctor`. Called once, when plugins are loaded."""
    return ()


@hookspec(firstresult=True)
def haiku_rag_resolve_scope(config: AppConfig, selector: ScopeSelector) -> DatabaseScope | None:
    """Where databases come from. Called when a client or a command needs its scope; opens nothing."""
    return None


@hookspec(firstresult=True)
def haiku_rag_plan_federation(scope: DatabaseScope, request: SearchRequest) -> SearchPlan | None:
    """How the selected databases are grouped into calls. Called once a search, after the scope is known."""
    return None


@hookspec(firstresult=True)
def haiku_rag_translate_error(error: Exception, ref: DatabaseRef) -> HaikuRagError | None:
    """What an engine's exception means. Called for every failure of one database, before anything is raised."""
    return None


@hookspec
def haiku_rag_before_search(
    request: SearchRequest, options: Mapping[str, Any]
) -> SearchRequest | Awaitable[SearchRequest | None] | None:
    """A changed request, or None to leave it. Called before anything is opened."""
    return None


@hookspec
def haiku_rag_after_search(
    request: SearchRequest, results: SearchResults, options: Mapping[str, Any]
) -> SearchResults | Awaitable[SearchResults | None] | None:
    """Changed results, or None to leave them. Called with the enriched results."""
    return None


@hookspec
def haiku_rag_before_ingest(
    document: DocumentImport, options: Mapping[str, Any]
) -> DocumentImport | Awaitable[DocumentImport | None] | None:
    """A changed document, or None to leave it. Called before chunks are embedded; raising refuses the document."""
    return None


@hookspec
def haiku_rag_after_ingest(document: Document) -> Awaitable[None] | None:
    """A document was stored. Called after the commit."""
    return None


@hookspec
def haiku_rag_after_delete(document_id: str, source: str) -> Awaitable[None] | None:
    """A document was deleted. Called after the commit."""
    return None


@hookspec
def haiku_rag_search_finished(request: SearchRequest, report: SearchReport) -> Awaitable[None] | None:
    """A search is over. Called with its report, just before the results are returned."""
    return None


@hookspec
def haiku_rag_lifespan(client: HaikuRAG) -> AbstractAsyncContextManager[object] | None:
    """An asynchronous context manager that is held while the client is open. Called when the client is entered."""
    return None
