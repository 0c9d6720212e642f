"""Where the model is: in a folder that the user names, or on the hub and then in its cache."""

from dataclasses import dataclass
from pathlib import Path

from haiku.rag.errors import RerankError
from haiku.rag.rerankers.sentence_transformers.hub import HubModel
from haiku.rag.rerankers.sentence_transformers.library import library
from haiku.rag.rerankers.sentence_transformers.tracking import Tracker

ORGANISATION = "cross-encoder"
"""Whose a model is on the hub whose name says nothing of that."""


@dataclass(frozen=True, kw_only=True)
class ModelPlace:
    """A model by the name that the user gave it: a folder, or a model of the hub."""

    name: str
    path: Path
    hub: HubModel | None = None

    def folder(self, tracker: Tracker, *, offline: bool) -> Path:
        """The folder to load it from, fetched first where it is of the hub, not there, and that is allowed."""
        if self.hub is None:
            return self.require()
        there = self.hub.folder()
        if there is not None:
            return there
        if offline or library("huggingface_hub").is_offline_mode():
            setting = "rerank_sentence_transformers.offline" if offline else "HF_HUB_OFFLINE"
            raise RerankError(
                f"model '{self.hub.repository}' is not on this disk, and {setting} is set. "
                "Fetch it with: haiku-rag download-models"
            )
        return self.hub.fetch(tracker)

    def require(self) -> Path:
        """The folder that the user named; `RerankError` where there is none."""
        if not self.path.is_dir():
            raise RerankError(
                f"there is no folder '{self.name}' with a model. A relative path starts at the configuration file's "
                "folder."
            )
        return self.path


def place_of(name: str, path: Path, *, revision: str | None, token: str | None) -> ModelPlace:
    """What the user's name means; an existing folder comes before a model of the hub."""
    if path.is_dir() or name.startswith((".", "~", "/")) or "\\" in name or name.count("/") > 1:
        return ModelPlace(name=name, path=path)
    repository = name if "/" in name else f"{ORGANISATION}/{name}"
    return ModelPlace(
        name=name, path=path, hub=HubModel(repository=repository, revision=revision or "main", token=token)
    )
