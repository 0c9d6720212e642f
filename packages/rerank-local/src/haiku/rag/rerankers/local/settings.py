"""The `rerank_local` section of the configuration."""

from typing import Annotated

from pydantic import Field

from haiku.rag.config.section import Section


class RerankLocalSettings(Section):
    """How much is read and kept.

    The first `max_candidates` are scored, and never fewer than results are wanted; of each passage its first
    `max_tokens` tokens. Up to `cache_mb` of what was read is kept for later queries.
    """

    max_candidates: Annotated[int, Field(gt=0)] = 30
    max_tokens: Annotated[int, Field(gt=0, le=8192)] = 512
    cache_mb: Annotated[int, Field(ge=0)] = 128
