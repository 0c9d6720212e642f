"""What is raised when a plugin does not keep to a hook: an error that names the plugin."""

import logging
from typing import Any

from haiku.rag.errors import PluginError
from haiku.rag.plugins import messages
from haiku.rag.plugins.loading import Plugin

logger = logging.getLogger(__name__)


def plugin_error(plugin: Plugin, where: str, error: BaseException, *, words: bool = True) -> PluginError:
    """Names the plugin. `words=False` leaves out what it said, which may hold a location."""
    logger.debug("%s failed", where, exc_info=error)
    label = messages.labelled(plugin.name, plugin.distribution, plugin.version)
    text = " ".join(str(error).split()).rstrip(".") if words else ""
    return PluginError(f"plugin {label} failed in {where}: {type(error).__name__}{f': {text}' if text else ''}.")


def checked(plugin: Plugin, hook: str, answer: object, expected: type) -> Any:
    """The answer, unless it is of another type than the hook's."""
    if isinstance(answer, expected):
        return answer
    label = messages.labelled(plugin.name, plugin.distribution, plugin.version)
    raise PluginError(
        f"plugin {label} returned a {type(answer).__name__} from {hook}, and must return {expected.__name__} or None."
    )
