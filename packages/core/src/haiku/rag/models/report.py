"""How a search went: per database, per stage and per result."""

from typing import Literal

from pydantic import Field

from haiku.rag.models.documents import Model

DatabaseStatus = Literal["ok", "empty", "missing", "timeout", "unavailable"]


class DatabaseReport(Model):
    """What one database contributed.

    `candidates` is how many hits it offered to the ranking, `best_score` the best of its own scores,
    `milliseconds` the time from asking to answering, opening included. `reason` is a sentence when the status is
    neither ok nor empty.
    """

    name: str
    status: DatabaseStatus
    candidates: int = 0
    best_score: float | None = None
    milliseconds: float = 0.0
    reason: str | None = None


class ResultReport(Model):
    """One result's scores and ranks before and after each stage; ranks count from 1.

    First the legs of its database: `similarity` and `vector_rank`, `keyword_score`, `keyword_rank` and `keyword_share`
    (how much of the score that was attainable there), None where a leg did not find it or knows no such number. Then
    its rank in the database, the fusion's score and rank, the reranker's (None where none scored it), the score after
    weights, the boost that was added, and what came of it.
    """

    chunk_id: str
    source: str
    similarity: float | None = None
    vector_rank: int | None = None
    keyword_score: float | None = None
    keyword_share: float | None = None
    keyword_rank: int | None = None
    rank_in_database: int
    fused_score: float
    fused_rank: int
    rerank_score: float | None = None
    rerank_rank: int | None = None
    weighted_score: float
    boost: float = 0.0
    score: float
    rank: int


class SearchReport(Model):
    """The report of one search.

    `stages` maps a stage to its duration in milliseconds. `warnings` are sentences for the user, from core and plugins.
    `duplicates` is how many candidates were named in a hit's `also_in` instead of being hits of their own.
    """

    databases: list[DatabaseReport] = Field(default_factory=list)
    results: list[ResultReport] = Field(default_factory=list)
    stages: dict[str, float] = Field(default_factory=dict)
    fusion: str | None = None
    rerank: str = "off"
    candidates: int = 0
    below_min_score: int = 0
    duplicates: int = 0
    warnings: list[str] = Field(default_factory=list)

    @property
    def left_out(self) -> list[DatabaseReport]:
        """The selected databases that did not answer."""
        return [entry for entry in self.databases if entry.reason is not None]
