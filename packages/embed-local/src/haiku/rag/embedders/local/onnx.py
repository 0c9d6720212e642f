"""The embedder `onnx`: a text encoder from a folder that the user names."""

from pathlib import Path

from haiku.rag.config import AppConfig, EmbeddingModelConfig
from haiku.rag.embedders.local.folder import KEY, ModelFolder
from haiku.rag.embedders.local.model import EncoderModel
from haiku.rag.embedders.local.recipe import Recipe
from haiku.rag.embedders.local.text_embedder import TextEmbedder
from haiku.rag.embedders.local.tokens import TextTokenizer
from haiku.rag.errors import ConfigError, EmbeddingError

USUAL_LIMIT = 512
"""Without a word from the user, longer texts are read in windows: memory grows with the square of a sequence."""
FRAME = 2
"""The special tokens that usually surround a text."""


def create_onnx(config: AppConfig) -> TextEmbedder:
    """The embedder `onnx`. Looks for the folder's files and reads its settings; loads neither tokenizer nor model."""
    settings = config.embeddings.model
    typed = settings.name
    if not typed.strip():
        raise ConfigError(f"{KEY}: embedder 'onnx' needs the path of a folder with 'model.onnx' and 'tokenizer.json'.")
    path = config.resolve_path(typed)
    folder = ModelFolder(path, typed)
    return TextEmbedder(
        _recipe(settings, folder, path),
        tokenizer=lambda: _load_tokenizer(folder, typed),
        model=lambda: _load_model(folder, typed),
    )


def _recipe(settings: EmbeddingModelConfig, folder: ModelFolder, path: Path) -> Recipe:
    """What the configuration sets, and for the rest what the folder's files say."""
    positions = folder.positions()
    limit = max(1, min(USUAL_LIMIT, folder.sequence_limit() or USUAL_LIMIT) - FRAME)
    wanted = settings.max_tokens or limit
    explicit_pooling = "pooling" in settings.model_fields_set
    return Recipe(
        provider="onnx",
        model=(path.resolve() if path.name == ".." else path).name,
        dimension=settings.vector_dim or folder.dimension(),
        query_prefix=settings.query_prefix,
        document_prefix=settings.document_prefix,
        pooling=settings.pooling if explicit_pooling else folder.pooling() or settings.pooling,
        normalize=settings.normalize,
        max_tokens=wanted if positions is None else max(1, min(wanted, positions - FRAME)),
        positions=positions,
    )


def _load_tokenizer(folder: ModelFolder, typed: str) -> TextTokenizer:
    where = f"'tokenizer.json' in '{typed}'"
    try:
        data = folder.tokenizer.read_bytes()
    except OSError as error:
        raise EmbeddingError(f"{where} cannot be read: {error.strerror}.") from error
    return TextTokenizer(data, where=where)


def _load_model(folder: ModelFolder, typed: str) -> EncoderModel:
    model = EncoderModel(folder.model, where=f"'{folder.model.name}' in '{typed}'")
    missing = folder.further_modules()
    if missing and not model.pooled:
        raise EmbeddingError(
            f"'modules.json' in '{typed}' lists {', '.join(map(repr, missing))}, which '{folder.model.name}' does not "
            "contain. Export the model with its output 'sentence_embedding' only."
        )
    return model
