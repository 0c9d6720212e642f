"""How a database is rebuilt, and what is seen of it."""

from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict

from haiku.rag.models.documents import Model


class RebuildMode(StrEnum):
    """What is made anew.

    `FULL` fetches and converts every source again, and takes what is stored where there is none or it cannot be had;
    `RECHUNK` cuts what is stored into chunks again; `EMBED_ONLY` keeps the chunks and makes their vectors again;
    `REINDEX` builds the indexes again.
    """

    FULL = "full"
    RECHUNK = "rechunk"
    EMBED_ONLY = "embed-only"
    REINDEX = "reindex"


class RebuildStep(Model):
    """One step of a rebuild: `done` of `total` documents were worked on.

    `outcome` is what became of one of them: `rebuilt`, `left` where another writer has changed or deleted it meanwhile,
    or `failed`; a `note` is about the whole. `reason` says why, and for a document that was rebuilt whether its source
    could not be used. `uri` is as messages show it, the document's title or id where it has none.
    """

    model_config = ConfigDict(frozen=True)

    done: int
    total: int
    outcome: Literal["rebuilt", "left", "failed", "note"]
    document_id: str | None = None
    uri: str = ""
    reason: str = ""
