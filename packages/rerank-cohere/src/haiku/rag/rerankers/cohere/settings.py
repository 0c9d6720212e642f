"""The section `rerank_cohere`."""

from typing import Annotated

from pydantic import Field

from haiku.rag.config.section import Section


class RerankCohereSettings(Section):
    """How passages are sent to Cohere.

    `batch_size` passages go into one request and `concurrency` requests are under way at once. Cohere reads the first
    `max_tokens_per_doc` tokens of each passage, 4096 where it is None. `priority` 0 is served first.
    `retries` is how often a request is repeated that could not be served.
    """

    batch_size: Annotated[int, Field(gt=0, le=1000)] = 1000
    concurrency: Annotated[int, Field(gt=0, le=64)] = 4
    max_tokens_per_doc: Annotated[int, Field(gt=0)] | None = None
    priority: Annotated[int, Field(ge=0)] | None = None
    retries: Annotated[int, Field(ge=0, le=5)] = 1
