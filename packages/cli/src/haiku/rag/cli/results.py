"""A search result for a reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from haiku.rag.cli.output import one_line

if TYPE_CHECKING:
    from haiku.rag.models import SearchResult


def result_lines(number: int, result: SearchResult, *, labelled: bool) -> Iterator[str]:
    """Rank, score and title; database, URI, headings and pages where there are any; the passage; an empty line.

    A passage that is in other databases too names them, labelled or not: it stands for them.
    """
    yield f"{number}. {result.score:.4f}  {one_line(result.document_title or '(no title)')}"
    if labelled:
        yield f"   database: {result.source}"
    if result.document_uri:
        yield f"   {one_line(result.document_uri)}"
    for copy in result.also_in:
        known_as = one_line(copy.document_uri or copy.document_title or copy.chunk_id)
        yield f"   also in {copy.source}: {known_as}"
    place = _place(result)
    if place:
        yield f"   {place}"
    yield ""
    yield from (f"   {line}".rstrip() for line in result.content.splitlines())
    yield ""


def _place(result: SearchResult) -> str:
    headings = " > ".join(one_line(heading) for heading in result.headings)
    pages = ", ".join(str(page) for page in result.page_numbers)
    word = "page" if len(result.page_numbers) == 1 else "pages"
    return "; ".join(part for part in (headings, f"{word} {pages}" if pages else "") if part)
