"""Resolves a record under a configuration: prints the object's name, or the error."""

import json
import sys

from haiku.rag.config import AppConfig
from haiku.rag.errors import PluginError

config = AppConfig.model_validate(json.loads(sys.argv[1]))
try:
    print(getattr(config.kernel.resolve(*sys.argv[2:]), "__qualname__", "an object"))
except PluginError as error:
    print(f"{type(error).__name__}: {error}")
