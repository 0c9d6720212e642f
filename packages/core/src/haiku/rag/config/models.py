"""The sections that core itself reads."""

from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from platformdirs import user_data_path
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from haiku.rag.config.section import NonBlank, Section
from haiku.rag.errors import ConfigError


def default_data_dir() -> Path:
    """The platform's folder for a user's data, such as `~/.local/share/haiku.rag`."""
    return user_data_path("haiku.rag", appauthor=False)


def expanded(path: Path | str) -> Path:
    """The path with `~` as the home directory; a user's that is not known stays as it is written."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def absolute(path: Path | str) -> Path:
    """The path from the root, `~` expanded; `ConfigError` for a relative one where the working directory is gone."""
    try:
        return expanded(path).absolute()
    except FileNotFoundError:
        reason = f"'{path}' is relative to the working directory, which was removed. Change to another one."
    raise ConfigError(reason)


def _finite(value: float) -> float:
    if not isfinite(value):
        raise PydanticCustomError("not_finite", "must be a finite number")
    return value


def _data_dir(value: Any) -> Any:
    if isinstance(value, str) and "\0" in value:
        raise PydanticCustomError("control_character", "must not hold a NUL character")
    return default_data_dir() if value in (None, "") else expanded(value) if isinstance(value, str) else value


Finite = Annotated[float, AfterValidator(_finite)]
Weight = Annotated[Finite, Field(ge=0)]


class StorageConfig(Section):
    """Where databases and the configuration live when nothing says otherwise, and how engines keep them fast.

    With `auto_vacuum` upkeep runs by itself after writes. Old states are kept for `vacuum_retention_seconds`, and
    longer where readers need them. `compaction_target_bytes` bounds what rewriting small files holds in memory.
    """

    data_dir: Annotated[Path, BeforeValidator(_data_dir)] = Field(default_factory=default_data_dir)
    auto_vacuum: bool = True
    vacuum_retention_seconds: Annotated[int, Field(ge=0)] = 24 * 60 * 60
    compaction_target_bytes: Annotated[int, Field(ge=1 << 20)] = 256 << 20


class ModelConfig(Section):
    """A model by provider and name."""

    provider: NonBlank
    name: str = ""
    base_url: str | None = Field(default=None, repr=False)
    api_key: SecretStr | None = None
    thinking: bool | str | None = None
    temperature: Finite | None = None
    max_tokens: Annotated[int, Field(gt=0)] | None = None
    vision: bool = False
    extra_body: dict[str, Any] = Field(default_factory=dict, repr=False)


class EmbeddingModelConfig(Section):
    """The embedding model. Without a provider, the installed one that needs no configuration serves.

    The keys from `pooling` on are for providers that load a model from a folder.
    """

    provider: NonBlank | None = None
    name: str = ""
    vector_dim: Annotated[int, Field(gt=0)] | None = None
    base_url: str | None = Field(default=None, repr=False)
    api_key: SecretStr | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    pooling: Literal["mean", "cls", "last"] = "mean"
    normalize: bool = True
    max_tokens: Annotated[int, Field(gt=0)] | None = None


class EmbeddingsConfig(Section):
    """How text becomes vectors. `batch_size` is how many chunks are handed to the embedder at once.

    `model` writes and reads. `others` only read, for databases that record them, with `search.mixed_embedders: allow`.
    """

    model: EmbeddingModelConfig = EmbeddingModelConfig()
    others: list[EmbeddingModelConfig] = Field(default_factory=list)
    batch_size: Annotated[int, Field(gt=0)] = 64


class RerankingConfig(Section):
    """The reranker, off without a model.

    Past `timeout_s`, or on a failure, the fused order stands unless `required`.
    """

    model: ModelConfig | None = None
    timeout_s: Annotated[Finite, Field(gt=0)] = 30.0
    required: bool = False


class CalibratedConfig(Section):
    """The fusion `calibrated`: `similarity` is what the cosine counts, and the rest is what the words count."""

    similarity: Annotated[Finite, Field(ge=0, le=1)] = 0.6


class WeightedConfig(Section):
    """The fusion `weighted`: what the cosine and the keyword score count."""

    similarity: Weight = 0.95
    keyword: Weight = 0.05

    @model_validator(mode="after")
    def _refuse_nothing(self) -> Self:
        if self.similarity == self.keyword == 0.0:
            raise PydanticCustomError("no_weight", "similarity and keyword must not both be 0")
        return self


class SearchConfig(Section):
    """How databases are searched and their candidates ranked.

    `mixed_embedders` says whether databases of different embeddings may be searched together, `dedupe` that a passage
    which several databases hold is one hit.
    """

    limit: Annotated[int, Field(gt=0)] = 5
    max_context_chars: Annotated[int, Field(gt=0)] = 5000
    rerank_pool_factor: Annotated[int, Field(gt=0)] = 10
    rerank_max_candidates: Annotated[int, Field(gt=0)] | None = None
    fusion: NonBlank | None = None
    calibrated: CalibratedConfig = CalibratedConfig()
    weighted: WeightedConfig = WeightedConfig()
    weights: dict[str, Weight] = Field(default_factory=dict)
    boosts: dict[str, Finite] = Field(default_factory=dict)
    min_score: Finite | None = None
    max_per_source: Annotated[int, Field(gt=0)] | None = None
    dedupe: bool = False
    mixed_embedders: Literal["refuse", "allow"] = "refuse"
    on_unavailable: Literal["raise", "skip"] | list[str] = "raise"
    timeout_s: Annotated[Finite, Field(gt=0)] = 30.0


class ProcessingConfig(Section):
    """How documents are cut: `chunk_size` in the embedder's tokens; `chunker` where several are installed."""

    chunk_size: Annotated[int, Field(ge=16)] = 256
    chunker: NonBlank | None = None
    max_file_bytes: Annotated[int, Field(gt=0)] = 512 * 1024 * 1024


class QAConfig(Section):
    """The model that answers questions."""

    model: ModelConfig | None = None


class PromptsConfig(Section):
    """Text for the prompts: `domain_preamble` says what the databases are about."""

    domain_preamble: str = ""


class PluginsConfig(Section):
    """`disabled` names plugins or distributions that are not even imported; `prefer` those that win a conflict."""

    disabled: list[NonBlank] = Field(default_factory=list)
    prefer: list[NonBlank] = Field(default_factory=list)


class HookEntry(Section):
    """A plugin whose transform hooks run, in the order of the list, with its options."""

    name: NonBlank
    options: dict[str, Any] = Field(default_factory=dict, repr=False)
