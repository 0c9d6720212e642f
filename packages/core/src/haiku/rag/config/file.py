"""The configuration file: where it is found, and how it is read."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from haiku.rag.config.app import AppConfig
from haiku.rag.config.models import absolute, default_data_dir, expanded
from haiku.rag.config.yaml_text import parsed_yaml
from haiku.rag.errors import ConfigError, MissingVariableError
from haiku.rag.plugins.kernel import Kernel

PATH_VARIABLE = "HAIKU_RAG_CONFIG_PATH"
FILE_NAME = "haiku.rag.yaml"
_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})")


def find_config(path: Path | str | None = None) -> Path | None:
    """The file that counts: `path`, `HAIKU_RAG_CONFIG_PATH`, `./haiku.rag.yaml`, the one in the data directory.

    A file that was named and is not there is a `ConfigError`; None where there is none at all.
    """
    named = path or os.environ.get(PATH_VARIABLE)
    if named:
        chosen = expanded(named)
        if not chosen.is_file():
            raise ConfigError(
                f"there is no configuration file '{named}'. Create one with: haiku-rag init-config '{named}'"
            )
        return absolute(chosen)
    places = (Path(FILE_NAME), default_data_dir() / FILE_NAME)  # the first is not there if its folder was removed
    return next((place.absolute() for place in places if place.is_file()), None)


def load_config(path: Path | str | None = None, *, kernel: Kernel | None = None) -> AppConfig:
    """The configuration from the file that `find_config` names, or the defaults where there is none.

    `kernel` holds the plugins to use, in place of those that are installed.

    In strings `${VAR}` and `${VAR:-default}` stand for environment variables, `$$` for a dollar sign.
    """
    found = find_config(path)
    if found is None:
        return AppConfig.model_validate({}, context={"kernel": kernel})
    data = _substituted(_read(found))
    try:
        config = AppConfig.model_validate(data, context={"kernel": kernel})
    except ValidationError as error:
        raise ConfigError(f"{found.name} is not valid: {describe(error)}") from None
    config._base_dir = found.parent
    return config


def describe(error: ValidationError) -> str:
    """Each fault as `key.path: what`, on one line, without any value."""
    lines = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, line['loc'])) or 'the file'}: {line['msg']}" for line in lines)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = parsed_yaml(path.read_bytes(), path.name)
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be read: {error.strerror}.") from None
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise ConfigError(f"{path.name} must hold sections at its top level, such as 'search:'.")
    return data


def _substituted(value: Any) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub(_variable, value)
    if isinstance(value, Mapping):
        return {key: _substituted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_substituted(item) for item in value]
    return value


def _variable(match: re.Match[str]) -> str:
    if match["dollar"]:
        return "$"
    value = os.environ.get(match["name"], "")
    if value:
        return value
    if match["default"] is None:
        raise MissingVariableError(
            f"the configuration names the environment variable '{match['name']}', which is not set. "
            f"Set it, or give a default: ${{{match['name']}:-default}}"
        )
    return match["default"]
