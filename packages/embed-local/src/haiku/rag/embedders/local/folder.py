"""A folder with an ONNX text encoder, and what its files say about how the encoder is used."""

import json
from pathlib import Path
from typing import Any

from haiku.rag.embedders.local.recipe import Pooling
from haiku.rag.errors import ConfigError

KEY = "embeddings.model.name"
APPLIED_MODULES = ("Transformer", "Pooling", "Normalize")
DIMENSIONS = ("hidden_size", "d_model", "dim")
OFFSET_POSITIONS = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})
"""Architectures that keep their first positions, up to that of the padding token, to themselves."""
NO_LIMIT = 1_000_000
"""Tokenizer configurations say "no limit" with a number far beyond this one."""

_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
    "mean": "mean",
    "cls": "cls",
    "lasttoken": "last",
}


class ModelFolder:
    """The folder at `path`; messages call it `typed`, as the configuration does. ConfigError if a file is missing."""

    def __init__(self, path: Path, typed: str) -> None:
        self._path = path
        self._typed = typed
        if not path.is_dir():
            found = "is a file" if path.is_file() else "does not exist"
            raise ConfigError(
                f"{KEY}: '{typed}' {found}. Give a folder with 'model.onnx' and 'tokenizer.json'; a relative path "
                "starts at the configuration file's folder."
            )
        self.model = self._find_model()
        self.tokenizer = path / "tokenizer.json"
        if not self.tokenizer.is_file():
            raise ConfigError(f"{KEY}: '{typed}' has no 'tokenizer.json'. Copy it from the place the model is from.")
        self._config = self._object("config.json")
        self._modules = self._read_modules()

    def dimension(self) -> int | None:
        """The length of its vectors, where its configuration says it."""
        return next((value for key in DIMENSIONS if (value := _positive(self._config.get(key)))), None)

    def positions(self) -> int | None:
        """The longest sequence that it accepts, where its configuration says it."""
        positions = _positive(self._config.get("max_position_embeddings"))
        if positions is None or self._config.get("model_type") not in OFFSET_POSITIONS:
            return positions
        padding = self._config.get("pad_token_id")
        return positions - 1 - (padding if isinstance(padding, int) else 1)

    def sequence_limit(self) -> int | None:
        """The longest sequence that it should be given, special tokens included, where its files say it."""
        said = (
            _positive(self._object("sentence_bert_config.json").get("max_seq_length")),
            _positive(self._object("tokenizer_config.json").get("model_max_length")),
            self.positions(),
        )
        return min((value for value in said if value is not None and value < NO_LIMIT), default=None)

    def pooling(self) -> Pooling | None:
        """How its token vectors become one, where its files say it. ConfigError if that is a way unknown here."""
        modes = self._object(f"{self._modules.get('Pooling', '1_Pooling')}/config.json")
        named = modes.get("pooling_mode")
        chosen = (
            [named] if isinstance(named, str) else [key for key in modes if key in _POOLINGS and modes[key] is True]
        )
        other = [
            key for key in modes if key.startswith("pooling_mode_") and modes[key] is True and key not in _POOLINGS
        ]
        if other or len(chosen) > 1 or any(mode not in _POOLINGS for mode in chosen):
            raise ConfigError(
                f"embeddings.model.pooling: '{self._typed}' is pooled by {', '.join(map(repr, chosen + other))}, and "
                "one of mean, cls and last is possible. Set embeddings.model.pooling to use one of them nevertheless."
            )
        return _POOLINGS[chosen[0]] if chosen else None

    def further_modules(self) -> list[str]:
        """The modules behind the encoder that only the model file itself could apply, such as a dense layer."""
        return [name for name in self._modules if name not in APPLIED_MODULES]

    def _find_model(self) -> Path:
        for name in ("model.onnx", "onnx/model.onnx"):
            if (self._path / name).is_file():
                return self._path / name
        found = sorted(file for place in ("*.onnx", "onnx/*.onnx") for file in self._path.glob(place))
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(f"'{file.relative_to(self._path).as_posix()}'" for file in found)
            raise ConfigError(f"{KEY}: '{self._typed}' has several models: {names}. Call the one to use 'model.onnx'.")
        raise ConfigError(
            f"{KEY}: '{self._typed}' has no 'model.onnx' or 'onnx/model.onnx'. Put the ONNX export there."
        )

    def _read_modules(self) -> dict[str, str]:
        """The kinds of the modules that `modules.json` lists, each with its folder."""
        listed = self._json("modules.json")
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        return {str(entry.get("type", "")).rpartition(".")[2]: str(entry.get("path", "")) for entry in entries}

    def _object(self, name: str) -> dict[str, Any]:
        value = self._json(name)
        return value if isinstance(value, dict) else {}

    def _json(self, name: str) -> Any:
        file = self._path / name
        if not file.is_file():
            return None
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{KEY}: '{name}' in '{self._typed}' cannot be read as JSON: {error}.") from error


def _positive(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None
