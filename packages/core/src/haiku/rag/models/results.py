"""What a search returns."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from haiku.rag.models.documents import Model
from haiku.rag.models.report import SearchReport

SearchType = Literal["hybrid", "vector", "fts"]


class Provenance(Model):
    """Where else a passage was found."""

    source: str
    chunk_id: str
    document_id: str
    document_uri: str | None = None
    document_title: str | None = None


class SearchResult(Model):
    """One hit, with the database it came from.

    `score` is the score that ordered the list; its scale is the fusion's or the reranker's. `image_data` maps the
    refs of the hit's pictures to base64 text. `also_in` names the same passage in other databases, best first, where
    duplicates are one hit.
    """

    content: str
    score: float
    source: str
    chunk_id: str
    document_id: str
    document_uri: str | None = None
    document_title: str | None = None
    document_meta: dict[str, Any] = Field(default_factory=dict)
    headings: list[str] = Field(default_factory=list)
    page_numbers: list[int] = Field(default_factory=list)
    labels: list[str] = Field(default_factory=list)
    doc_item_refs: list[str] = Field(default_factory=list)
    image_data: dict[str, str] | None = None
    also_in: list[Provenance] = Field(default_factory=list)


class SearchResults(list[SearchResult]):
    """The hits of one search, best first, and the report on how they were found."""

    def __init__(self, results: Iterable[SearchResult], *, report: SearchReport) -> None:
        super().__init__(results)
        self.report = report
