"""What the configuration says about plugins, read before any is imported."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

Names = tuple[str, ...]


def plugin_settings(config_path: str | None) -> tuple[Names, Names]:
    """`plugins.disabled` and `plugins.prefer` of the configuration file that counts.

    It is found as `haiku.rag.config.find_config` finds it. Faults are left to the command that reads the whole
    configuration: here they mean no setting. A file that does not speak of plugins costs no YAML parser.
    """
    for place in _places(config_path):
        try:
            data = place.read_bytes() if place.is_file() else None  # a device might never end
        except OSError:
            continue
        if data is None:
            continue
        section = _section(data) if b"plugins" in data else {}
        return _names(section.get("disabled")), _names(section.get("prefer"))
    return (), ()


def _places(config_path: str | None) -> Iterator[Path]:
    named = config_path or os.environ.get("HAIKU_RAG_CONFIG_PATH")
    if named:
        with suppress(RuntimeError):  # a user that is not known
            yield Path(named).expanduser()
        return
    yield Path("haiku.rag.yaml")
    from platformdirs import user_data_path

    yield user_data_path("haiku.rag", appauthor=False) / "haiku.rag.yaml"


def _section(data: bytes) -> Mapping[str, Any]:
    import yaml

    try:
        whole = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    section = whole.get("plugins") if isinstance(whole, Mapping) else None
    return section if isinstance(section, Mapping) else {}


def _names(value: Any) -> Names:
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()
