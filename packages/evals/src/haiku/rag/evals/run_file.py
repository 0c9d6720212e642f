"""A run: what was measured, of what, with what. Kept as one JSON file."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from haiku.rag.evals.errors import EvalError
from haiku.rag.evals.variants import Mode
from haiku.rag.models import SearchType

VERSION = 1
FORMAT = "haiku-rag-eval"


class Part(BaseModel):
    """A part of a run. A key that a later version adds is not an error."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class DatasetFacts(Part):
    """What a dataset holds; `digest` tells whether two are the same."""

    name: str
    digest: str
    passages: int
    judgments: int


class Question(Part):
    """A question that was asked. All lists of an outcome are in the order of a run's questions."""

    dataset: str
    id: str
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others, in any run."""
        return self.dataset, self.id


class Outcome(Part):
    """What one way of searching, at one place, made of every question.

    `values` holds a list for each measure, `own_share` the part of each list that is from the question's own dataset,
    `milliseconds` how long each search took, and `embedding_milliseconds` how long of it the question's embedding did.
    `hits` are keys, `scores` theirs. `fused_by` is the strategy that the search reported, and `rerank_failures` how
    often the reranker failed and the fused order stood.
    """

    label: str
    mode: Mode
    search_type: SearchType
    fusion: str | None = None
    reranker: str | None = None
    fused_by: str | None = None
    rerank_failures: int = 0
    values: dict[str, list[float]] = Field(default_factory=dict)
    own_share: list[float] = Field(default_factory=list)
    milliseconds: list[float] = Field(default_factory=list)
    embedding_milliseconds: list[float] = Field(default_factory=list)
    hits: list[list[str]] = Field(default_factory=list)
    scores: list[list[float]] = Field(default_factory=list)


class Settings(Part):
    """What was asked for. `language` is None for what is configured."""

    limit: int
    filter: str | None = None
    language: str | None = None
    max_questions: int | None = None
    seed: int = 0
    databases: list[str] = Field(default_factory=list)
    storage: str = ""
    embedding: str = ""


class Run(Part):
    """One measurement. It names databases and never says where they are."""

    format: Literal["haiku-rag-eval"] = "haiku-rag-eval"
    version: int = VERSION
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    settings: Settings
    datasets: list[DatasetFacts]
    questions: list[Question]
    outcomes: list[Outcome]
    versions: dict[str, str] = Field(default_factory=dict)
    machine: dict[str, str] = Field(default_factory=dict)


def save_run(run: Run, path: Path | str) -> None:
    """Write the run; a file that is there already is replaced as a whole."""
    target = Path(path).expanduser()
    beside = target.with_name(f"{target.name}.{uuid4().hex[:8]}")
    try:
        beside.write_text(run.model_dump_json(), encoding="utf-8")
        os.replace(beside, target)  # noqa: PTH105 - replaces on every platform
    except OSError as error:
        raise EvalError(f"'{path}' cannot be written: {error.strerror}.") from None


def load_run(path: Path | str) -> Run:
    """Read a run; `EvalError` for what is none, or one of a later version."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvalError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}.") from None
    try:
        run = Run.model_validate_json(text)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) or "the file"
        raise EvalError(
            f"'{path}' is not a run of 'haiku-rag eval run --out': {place} is not as it should be."
        ) from None
    if run.version > VERSION:
        raise EvalError(
            f"'{path}' has version {run.version} of the format, and this is {VERSION}. Upgrade haiku-rag-evals."
        )
    if not run.outcomes:
        raise EvalError(f"'{path}' holds no outcome.")
    return run
