"""The configuration in effect, as plain data without secrets."""

from typing import Any

from pydantic import ValidationError

from haiku.rag.cli.masking import masked
from haiku.rag.config import AppConfig
from haiku.rag.errors import HaikuRagError
from haiku.rag.plugins import ConfigSectionRecord


def effective_settings(config: AppConfig) -> tuple[dict[str, Any], list[str]]:
    """Core's sections and those of the installed plugins, with their defaults; and what could not be shown."""
    shown = {name: masked(_dumped(getattr(config, name))) for name in AppConfig.model_fields}
    troubles: list[str] = []
    for record in config.kernel.records(ConfigSectionRecord):
        try:
            section = config.section(record.name)
        except HaikuRagError as error:
            troubles.append(str(error))
        except ValidationError:
            troubles.append(f"the section '{record.name}' has no defaults and is not in the configuration.")
        else:
            shown[record.name] = masked(section.model_dump(), secrets=record.secrets)
    return shown, troubles


def _dumped(value: Any) -> Any:
    return [item.model_dump() for item in value] if isinstance(value, list) else value.model_dump()
