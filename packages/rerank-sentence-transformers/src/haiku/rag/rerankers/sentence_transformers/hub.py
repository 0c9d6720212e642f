"""A model of the Hugging Face Hub: where it is on this disk, and how it comes there."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from haiku.rag.errors import RerankError
from haiku.rag.rerankers.sentence_transformers.library import library
from haiku.rag.rerankers.sentence_transformers.refusals import is_away, reason_of
from haiku.rag.rerankers.sentence_transformers.tracking import Tracker

OTHER_FORMATS = (
    "*.onnx", "*.onnx_data", "onnx/*", "openvino/*", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf", "*.mlmodel",
    "coreml/*", "*.mlpackage/*",
)  # fmt: skip
"""The same weights for other libraries."""
PICKLED = ("pytorch_model*.bin", "pytorch_model.bin.index.json")
"""The same weights in an older format."""
WEIGHTS = ("*.safetensors", "*.bin")


@dataclass(frozen=True, kw_only=True)
class HubModel:
    """A model by its name on the hub, at a branch, tag or commit, by default the branch `main`."""

    repository: str
    revision: str = "main"
    token: str | None = field(default=None, repr=False)

    def folder(self) -> Path | None:
        """The folder that holds it on this disk; None where it is not there, or not whole. Asks nobody."""
        hub = library("huggingface_hub")
        errors = library("huggingface_hub.errors")
        try:
            tree = hub.get_cached_repo_tree(self.repository, revision=self.revision)
            ignored = unneeded(file.path for file in tree)
        except errors.CachedRepoTreeNotFoundError:  # it came here by another program
            ignored = None
        except errors.HFValidationError as error:
            raise self._unfetched(error) from error
        try:
            folder = Path(
                hub.snapshot_download(
                    self.repository, revision=self.revision, local_files_only=True, ignore_patterns=ignored
                )
            )
        except errors.LocalEntryNotFoundError:
            return None
        return folder if ignored is not None or seems_whole(folder) else None

    def fetch(self, tracker: Tracker) -> Path:
        """Bring what is missing here, and return the folder. `RerankError` says why that failed.

        The revision's name is pointed to the files when all of them are there: until then, what it named before serves.
        """
        try:
            return self._fetched(tracker)
        except RerankError:
            raise
        except Exception as error:  # the border: what the hub's client and its libraries raise has no common type
            there = self.folder() if is_away(error) else None
            if there is None:
                raise self._unfetched(error) from error
            return there

    def _fetched(self, tracker: Tracker) -> Path:
        client = library("huggingface_hub")
        about = client.HfApi(token=self.token).model_info(self.repository, revision=self.revision)
        ignored = unneeded(file.rfilename for file in about.siblings)
        names = client.utils.filter_repo_objects([file.rfilename for file in about.siblings], ignore_patterns=ignored)
        # One after the other, in this thread: those of a pool would keep the process from ending until a hub answers.
        fetch = partial(client.hf_hub_download, self.repository, revision=about.sha, token=self.token)
        missing = [file for file in (fetch(name, dry_run=True) for name in names) if file.will_download]
        tracker.expect(sum(file.file_size for file in missing))
        for file in sorted(missing, key=lambda file: file.file_size):  # the weights last, see `seems_whole`
            fetch(file.filename, tqdm_class=tracker.bar)
            tracker.count_whole(file.file_size)
        client.snapshot_download(
            self.repository,
            revision=self.revision,
            token=self.token,
            ignore_patterns=ignored,
            tqdm_class=tracker.bar,
        )
        folder = self.folder()
        if folder is None:  # the client takes it lightly that it could not note down what belongs to the model
            raise RerankError(f"model '{self.repository}' could not be fetched: the hub gives no list of its files.")
        return folder

    def _unfetched(self, error: Exception) -> RerankError:
        return RerankError(f"model '{self.repository}' could not be fetched: {reason_of(error, self.revision)}")


def unneeded(names: Iterable[str]) -> list[str]:
    """Patterns of the files that loading the model does not need."""
    has_safe = any(name.endswith(".safetensors") for name in names)
    return [*OTHER_FORMATS, *(PICKLED if has_safe else ())]


def seems_whole(folder: Path) -> bool:
    """Whether a folder of which no list of files is known has a configuration and all parts of its weights."""
    parts: set[str] = set()
    for index in folder.glob("*.index.json"):
        parts |= set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    wanted = ["config.json", *parts]
    return all((folder / name).is_file() for name in wanted) and any(
        file for kind in WEIGHTS for file in folder.glob(kind)
    )
