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
    """One result's scores before and after each stage; ranks count from 1."""

    chunk_id: str
    source: str
    similarity: float | None = None
    keyword_score: float | None = None
    rank_in_database: int
    fused_score: float
    fused_rank: int
    score: float
    rank: int


class SearchReport(Model):
    """The report of one search.

    `stages` maps a stage to its duration in milliseconds; `warnings` are sentences for the user that plugins add.
    """

    databases: list[DatabaseReport] = Field(default_factory=list)
    results: list[ResultReport] = Field(default_factory=list)
    stages: dict[str, float] = Field(default_factory=dict)
    fusion: str | None = None
    rerank: str = "off"
    candidates: int = 0
    below_min_score: int = 0
    warnings: list[str] = Field(default_factory=list)

    @property
    def left_out(self) -> list[DatabaseReport]:
        """The selected databases that did not answer."""
        return [entry for entry in self.databases if entry.reason is not None]
