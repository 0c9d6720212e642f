"""The tokenizer and the encoder, loaded together from one file."""

from dataclasses import dataclass
from pathlib import Path

from haiku.rag.embedders.multilingual.encoder import Encoder
from haiku.rag.embedders.multilingual.packed import PackedModel
from haiku.rag.embedders.multilingual.sequences import Frame
from haiku.rag.embedders.multilingual.tokenizer import PieceTokenizer
from haiku.rag.embedders.multilingual.weights import installed_weights, read_weights
from haiku.rag.errors import EmbeddingError

NAME = "multilingual-e5-small"
DIMENSION = 384
POSITIONS = 512


@dataclass(frozen=True)
class Model:
    """What embedding takes. Several threads may use it at once."""

    tokenizer: PieceTokenizer
    encoder: Encoder

    def frame(self, prefix: str, most: int) -> Frame:
        """What stands around at most `most` tokens of a text. EmbeddingError if the prefix leaves no room for one."""
        before = (self.tokenizer.start, *self.tokenizer.ids(prefix))
        room = min(most, POSITIONS - len(before) - 1)
        if room < 1:
            raise EmbeddingError(
                f"embedder 'multilingual': the prefix has {len(before) - 1} tokens and leaves no room for text: "
                f"'{NAME}' reads {POSITIONS} at a time. Shorten query_prefix and document_prefix in embeddings.model."
            )
        return Frame(before, (self.tokenizer.end,), room)


def load_model(path: Path | None) -> Model:
    """The model of the file at `path`, or of the one that is installed. Blocking: about a second."""
    packed = PackedModel(read_weights(path or installed_weights()))
    return Model(PieceTokenizer(packed), Encoder(packed))
