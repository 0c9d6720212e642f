"""The factory of `multilingual`: what the configuration may say, and what follows from it."""

from pathlib import Path

from haiku.rag.config import AppConfig, EmbeddingModelConfig
from haiku.rag.embedders.multilingual.model import DIMENSION, NAME, load_model
from haiku.rag.embedders.multilingual.text_embedder import MultilingualEmbedder
from haiku.rag.errors import ConfigError
from haiku.rag.models import EmbeddingIdentity

MAX_TOKENS = 500
"""The model reads 512 at a time; prefix and special tokens take four of them, and another prefix may take more."""
QUERY_PREFIX, DOCUMENT_PREFIX = "query: ", "passage: "
"""What the model was trained with."""
SECTION = "embeddings.model"


def create_multilingual(config: AppConfig, *, weights: Path | None = None) -> MultilingualEmbedder:
    """The embedder `multilingual`; loads nothing. `weights` is another place of the same file."""
    settings = config.embeddings.model
    _check(settings)
    identity = EmbeddingIdentity(
        provider="multilingual",
        model=NAME,
        dimension=DIMENSION,
        document_prefix=_set(settings, "document_prefix", DOCUMENT_PREFIX),
    )
    return MultilingualEmbedder(
        identity,
        query_prefix=_set(settings, "query_prefix", QUERY_PREFIX),
        max_tokens=settings.max_tokens or MAX_TOKENS,
        load=lambda: load_model(weights),
    )


def _set(settings: EmbeddingModelConfig, key: str, usual: str) -> str:
    """What the configuration sets, an empty text too; else what is usual."""
    return str(getattr(settings, key)) if key in settings.model_fields_set else usual


def _check(settings: EmbeddingModelConfig) -> None:
    """Refuse what cannot be followed."""
    if settings.name not in ("", NAME):
        raise ConfigError(
            f"{SECTION}.name: no model '{settings.name}' in embedder 'multilingual'. It has '{NAME}', which is used "
            "where no name is given."
        )
    if settings.vector_dim not in (None, DIMENSION):
        raise ConfigError(
            f"{SECTION}.vector_dim: vectors of '{NAME}' have {DIMENSION} dimensions, and {settings.vector_dim} are "
            "wanted. Remove vector_dim."
        )
    if settings.pooling != "mean":
        raise ConfigError(
            f"{SECTION}.pooling: '{NAME}' was trained for the mean of its tokens, and '{settings.pooling}' is wanted. "
            "Remove pooling."
        )
    if not settings.normalize:
        raise ConfigError(f"{SECTION}.normalize: vectors of '{NAME}' always have length 1. Remove normalize.")
    if settings.max_tokens is not None and settings.max_tokens > MAX_TOKENS:
        raise ConfigError(
            f"{SECTION}.max_tokens: '{NAME}' reads up to {MAX_TOKENS} of a text's tokens in one piece, and "
            f"{settings.max_tokens} are wanted. A longer text is read in several pieces anyway."
        )
