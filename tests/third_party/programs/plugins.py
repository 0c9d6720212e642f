"""Prints the plugins that a configuration allows, as JSON: name, what became of it, and the sentence on it."""

import json
import sys

from haiku.rag.config import AppConfig
from haiku.rag.plugins.kernel import not_loaded

config = AppConfig.model_validate(json.loads(sys.argv[1]))
print(
    json.dumps(
        {
            plugin.name: {
                "distribution": plugin.distribution,
                "version": plugin.version,
                "module": plugin.module,
                "status": plugin.status,
                "sentence": "" if plugin.status == "loaded" else not_loaded(plugin),
                "records": [f"{record.kind} {record.name}" for record in plugin.records],
            }
            for plugin in config.kernel.plugins
        }
    )
)
