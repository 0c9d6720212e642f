"""Secrets out of what is printed: by type, by name, and inside of URLs and connection strings."""

import re
from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Any

from pydantic import SecretStr

MASK = "**********"
_SECRET_NAME = re.compile(
    r"secret|passw|passphrase|pwd|credential|authori[sz]ation|cookie|connection_?string|"
    r"(?:key|token)(?:$|[^a-z])|(?:^|[^a-z])(?:keys|sas|headers?)$|^tokens$|(?:access|api|auth|bearer)[_-]?tokens$",
    re.IGNORECASE,
)
_PUBLIC_OPTION = re.compile(r"region|endpoint|^(?:allow|use|virtual|skip|disable|enable)_|_style", re.IGNORECASE)
_FLAGS = frozenset({"true", "false", "yes", "no", "on", "off"})
_USERINFO = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^\s/?#@]*(?::[^\s@]*)?@", re.IGNORECASE)
_PARAMETER = re.compile(
    r"(?P<name>[\w.-]*(?:key|token|secret|passw(?:or)?d|pwd|sig|signature|credential)\s*=\s*)(?P<value>'[^']*'|[^&;\s#]+)",
    re.IGNORECASE,
)


def masked_url(text: str) -> str:
    """The text with what authorises masked: a URL's userinfo, and parameters such as `token=…`."""
    return _PARAMETER.sub(rf"\g<name>{MASK}", _USERINFO.sub(r"\g<scheme>***@", text))


def masked(value: Any, *, secrets: Collection[str] = ()) -> Any:
    """The value as plain data for YAML or JSON, every secret masked; `secrets` are more names that mean one."""
    if isinstance(value, Mapping):
        return {str(key): _entry(str(key), item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [masked(item, secrets=secrets) for item in value]
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, str | PurePath):
        return masked_url(str(value))
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _entry(key: str, value: Any, secrets: Collection[str]) -> Any:
    if key == "storage_options" and isinstance(value, Mapping):
        return {str(name): _option(str(name), item) for name, item in value.items()}
    hidden = key in secrets or _SECRET_NAME.search(key) is not None
    if hidden and value not in (None, "", [], {}) and not isinstance(value, bool):
        return MASK
    return masked(value, secrets=secrets)


def _option(name: str, value: Any) -> Any:
    """A storage option: shown where it says where and how, masked where it may say as whom."""
    text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    public = (_PUBLIC_OPTION.search(name) or text.lower() in _FLAGS) and not _SECRET_NAME.search(name)
    return masked_url(text) if public else MASK
