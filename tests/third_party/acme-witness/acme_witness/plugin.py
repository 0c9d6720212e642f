"""Leaves a file that says it was imported, and prints what a search reported."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from haiku.rag.plugins import hookimpl

if TYPE_CHECKING:
    from haiku.rag.federation import SearchRequest
    from haiku.rag.models import SearchReport

if "ACME_WITNESS" in os.environ:
    Path(os.environ["ACME_WITNESS"]).touch()


@hookimpl
def haiku_rag_search_finished(request: SearchRequest, report: SearchReport) -> None:
    """Say which databases answered."""
    print(f"witnessed {request.query!r} over {[entry.name for entry in report.databases]}")
