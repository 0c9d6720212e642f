"""Core's own plugin: fusion strategies, and the last answer to every decision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from haiku.rag.plugins import FusionRecord, SourceRecord, hookimpl

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig
    from haiku.rag.contracts import DatabaseRef
    from haiku.rag.errors import HaikuRagError
    from haiku.rag.federation import DatabaseScope, ScopeSelector, SearchPlan


@hookimpl
def haiku_rag_register_fusion() -> Iterable[FusionRecord]:
    """The strategies that core ships."""
    yield FusionRecord(
        name="cosine",
        summary="Cosine similarity to the query; the default for several databases",
        factory="haiku.rag.fusion.cosine:CosineFusion",
        keyword_share="fts",
    )
    yield FusionRecord(
        name="rrf",
        summary="Reciprocal rank over the legs of each database (k = 60); the default for hybrid search in one",
        factory="haiku.rag.fusion.rrf:ReciprocalRankFusion",
        compares_similarity=False,
        keyword_share="never",
    )
    yield FusionRecord(
        name="calibrated",
        summary="Cosine and comparable keyword scores together; recommended for several databases",
        factory="haiku.rag.fusion.calibrated:CalibratedFusion",
    )
    yield FusionRecord(
        name="weighted",
        summary="Cosine with a small part of the keyword score, by fixed weights",
        factory="haiku.rag.fusion.weighted:WeightedFusion",
    )


@hookimpl
def haiku_rag_register_source() -> Iterable[SourceRecord]:
    """Local files and folders."""
    yield SourceRecord(
        name="file",
        summary="Local files and folders",
        factory="haiku.rag.client.files:FileSource",
        schemes=("file",),
    )


@hookimpl(trylast=True)
def haiku_rag_resolve_scope(config: AppConfig, selector: ScopeSelector) -> DatabaseScope:
    """The databases that the configuration places."""
    from haiku.rag.federation.scope import resolve_scope

    return resolve_scope(config, selector)


@hookimpl(trylast=True)
def haiku_rag_plan_federation(scope: DatabaseScope) -> SearchPlan:
    """One call an engine that searches many, one a database for the others."""
    from haiku.rag.federation.plan import group_by_engine

    return group_by_engine(scope)


@hookimpl(trylast=True)
def haiku_rag_translate_error(error: Exception, ref: DatabaseRef) -> HaikuRagError:
    """What core makes of an engine's exception."""
    from haiku.rag.federation.boundary import translate_error

    return translate_error(error, ref)
