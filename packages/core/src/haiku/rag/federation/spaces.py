"""The query as each database's model sees it, and whose similarities compare."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

import anyio
import numpy as np
from numpy.typing import NDArray

from haiku.rag.contracts.embedder import LanguageBound
from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.errors import ConfigMismatchError, EmbeddingError, HaikuRagError
from haiku.rag.federation.scope import quoted

if TYPE_CHECKING:
    from haiku.rag.contracts import Embedder
    from haiku.rag.federation.fetch import Opened
    from haiku.rag.federation.request import SearchRequest
    from haiku.rag.federation.session import Session
    from haiku.rag.models import EmbeddingIdentity

logger = logging.getLogger(__name__)
ALIKE = 0.9999
"""Two models whose query vectors have at least this cosine are one model under two names."""


@dataclass(frozen=True, kw_only=True)
class Space:
    """Databases whose similarities compare. `readable` is the part of the query's text that their model reads."""

    names: tuple[str, ...]
    readable: float = 1.0


@dataclass(kw_only=True)
class Asked:
    """One embedder, and the databases whose queries it embeds."""

    embedder: Embedder
    refs: list[DatabaseRef] = field(default_factory=list)
    vector: NDArray[np.float32] | None = None
    readable: float = 1.0
    error: HaikuRagError | None = None

    async def embed(self, request: SearchRequest) -> None:
        """Embed the query, once; a failure is kept for the databases that needed it."""
        try:
            self.vector = await _embedded(self.embedder, request.query)
            if request.search_type == "hybrid" and request.text is not None:
                self.readable = await _readable(self.embedder, request.text)
        except HaikuRagError as error:
            self.error = error


@dataclass(kw_only=True)
class QueryVectors:
    """The query's vector for each database, why some have none, and the spaces of those that have one."""

    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    errors: dict[str, HaikuRagError] = field(default_factory=dict)
    spaces: list[Space] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


async def query_vectors(
    session: Session, request: SearchRequest, refs: Sequence[DatabaseRef], opened: Opened
) -> QueryVectors:
    """Embed the query once with every model that the databases record.

    Without mixed embeddings that is the configured one. A picture is not looked for in databases whose model reads
    text only; `ValueError` where all are such.
    """
    found = QueryVectors()
    recorded = {ref.name: database.identity for ref in refs if (database := opened[ref.name].value)}
    asked = _able(await _by_embedder(session, refs, opened, found), request, found)
    async with anyio.create_task_group() as group:
        for part in asked:
            group.start_soon(part.embed, request)
    for part in asked:
        for ref in part.refs:
            if part.vector is not None:
                found.vectors[ref.name] = part.vector
            elif part.error is not None:
                found.errors[ref.name] = part.error
    for parts in _alike([part for part in asked if part.vector is not None]):
        names = tuple(ref.name for part in parts for ref in part.refs)
        found.spaces.append(Space(names=names, readable=min(part.readable for part in parts)))
        found.warnings += _same_under_other_names({name: recorded[name] for name in names})
    return found


async def _by_embedder(
    session: Session, refs: Sequence[DatabaseRef], opened: Opened, found: QueryVectors
) -> list[Asked]:
    asked: dict[int, Asked] = {}
    for ref in refs:
        database = opened[ref.name].value
        assert database is not None  # only those that opened are asked
        try:
            embedder = await session.embedder_for(database, ref)
        except ConfigMismatchError as error:
            found.errors[ref.name] = error
            continue
        asked.setdefault(id(embedder), Asked(embedder=embedder)).refs.append(ref)
    return list(asked.values())


def _able(asked: Sequence[Asked], request: SearchRequest, found: QueryVectors) -> list[Asked]:
    """Those whose embedder reads what the query is."""
    if request.text is not None:
        return list(asked)
    able = [part for part in asked if "image" in part.embedder.modalities]
    for part in asked:
        if not able:
            check_reads_images(part.embedder)
        if part not in able:
            names, provider = quoted([ref.name for ref in part.refs]), part.embedder.identity.provider
            found.warnings.append(f"{names}: not searched, the embedder '{provider}' reads text only.")
    return able


def check_reads_images(embedder: Embedder) -> None:
    """`ValueError` for an embedder that reads text only."""
    if "image" not in embedder.modalities:
        raise ValueError(f"the embedder '{embedder.identity.provider}' reads text only, and the query is an image")


def _alike(asked: Sequence[Asked]) -> list[list[Asked]]:
    """Grouped by whether they see the query alike."""
    groups: list[list[Asked]] = []
    for part in asked:
        near = [group for group in groups if _cosine(group[0].vector, part.vector) >= ALIKE]
        if near:
            near[0].append(part)
        else:
            groups.append([part])
    return groups


def _cosine(one: NDArray[np.float32] | None, other: NDArray[np.float32] | None) -> float:
    if one is None or other is None or one.shape != other.shape:
        return 0.0
    first, second = one.astype(np.float64), other.astype(np.float64)
    length = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / length if length else 0.0


def _same_under_other_names(recorded: dict[str, EmbeddingIdentity | None]) -> list[str]:
    """One sentence where databases whose similarities are compared record different embeddings."""
    first: dict[str, str] = {}
    for name, identity in recorded.items():
        if identity is not None:
            first.setdefault(identity.describe(), name)
    if len(first) < 2:
        return []
    said = "; ".join(f"'{name}': {described}" for described, name in first.items())
    return [f"embeddings of other names that see the query alike were taken for one ({said})."]


async def _embedded(embedder: Embedder, query: str | bytes) -> NDArray[np.float32]:
    dimension = embedder.identity.dimension
    try:
        vector = np.asarray(await embedder.embed_query(query), dtype=np.float32)
    except HaikuRagError:
        raise
    except Exception as error:  # the plugin boundary: databases of other models can still answer
        logger.debug("an embedder failed", exc_info=True)
        reason = f"the embedder '{embedder.identity.provider}' failed ({type(error).__name__})."
    else:
        if vector.shape == (dimension,) and np.isfinite(vector).all():
            return vector
        reason = f"the embedder returned a query vector that is not {dimension} finite numbers."
    raise EmbeddingError(reason)


async def _readable(embedder: Embedder, text: str) -> float:
    """The part of the text that the model reads, where it says; else all of it."""
    if not isinstance(embedder, LanguageBound):
        return 1.0
    try:
        part = float(await anyio.to_thread.run_sync(embedder.reads, text))
    except Exception:  # the plugin boundary: it is a hint, and the search can go on without it
        logger.debug("an embedder did not say what it reads", exc_info=True)
        return 1.0
    return min(max(part, 0.0), 1.0) if isfinite(part) else 1.0
