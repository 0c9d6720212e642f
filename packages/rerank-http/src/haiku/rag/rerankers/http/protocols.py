"""What the services have in common, and where they differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BLANK = "-"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One service's dialect.

    `url` is where the public service is, None where there is none; `path` follows it. `passages` is the key that the
    passages go under. `model` is the default model, empty where the service knows which one it serves. `wants_count`
    says that the number of scores wanted is part of the request.
    `extra` is sent unless the configuration says otherwise. `batch_size` is a number of passages that the service takes
    in one request as it comes. `scale` holds for the models that the service's documentation gives it for.
    """

    url: str | None = None
    path: str = "rerank"
    passages: str = "documents"
    model: str = ""
    wants_count: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int
    scale: tuple[float, float] | None = None
    scale_of_default_model_only: bool = False

    def request(self, model: str, query: str, passages: Sequence[str], extra: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request. A key that `extra` sets to None is left out."""
        optional = {"model": model or None, **self.extra, **extra}
        body = {key: value for key, value in optional.items() if value is not None}
        # Some services refuse a request in which any text is empty.
        body["query"] = query if query.strip() else BLANK
        body[self.passages] = [passage if passage.strip() else BLANK for passage in passages]
        if self.wants_count:
            body["top_n"] = len(passages)
        return body

    def scale_for(self, model: str) -> tuple[float, float] | None:
        """The scale of a model's scores, None where the documentation does not say it."""
        return self.scale if not self.scale_of_default_model_only or model == self.model else None

    @property
    def reserved(self) -> frozenset[str]:
        """The keys of a request that the configuration cannot set."""
        return frozenset({"model", "query", self.passages, "top_n"})


HTTP = Protocol(batch_size=64)

JINA = Protocol(
    url="https://api.jina.ai/v1",
    # It scores each passage by itself. Its successors read all passages of a request together.
    model="jina-reranker-v2-base-multilingual",
    extra={"return_documents": False},
    batch_size=256,
    scale=(0.0, 1.0),
    scale_of_default_model_only=True,
)

VLLM = Protocol(
    # -1: as much of a passage as the model reads. Without it a passage that is longer is an error.
    extra={"truncate_prompt_tokens": -1},
    batch_size=128,
)

TEI = Protocol(
    passages="texts",
    wants_count=False,
    extra={"raw_scores": False, "truncate": True},
    # The default of its --max-client-batch-size.
    batch_size=32,
    scale=(0.0, 1.0),
)

ZEROENTROPY = Protocol(
    url="https://api.zeroentropy.dev/v1",
    path="models/rerank",
    model="zerank-2",
    batch_size=256,
)
