"""What a plugin author needs: `hookimpl` and the records that hooks yield.

A plugin's `plugin.py` imports this module and the standard library, and nothing else: everything heavy is named by
a record's `factory` and imported when it is selected.
"""

from haiku.rag.plugins.marks import hookimpl
from haiku.rag.plugins.records import (
    AnswererRecord,
    ChunkerRecord,
    CommandRecord,
    ConfigSectionRecord,
    ConverterRecord,
    EmbedderRecord,
    ErrorRecord,
    FusionRecord,
    HealthCheckRecord,
    McpToolRecord,
    PluginRecord,
    RerankerRecord,
    ScreenRecord,
    SourceRecord,
    StorageRecord,
)

__all__ = [
    "AnswererRecord",
    "ChunkerRecord",
    "CommandRecord",
    "ConfigSectionRecord",
    "ConverterRecord",
    "EmbedderRecord",
    "ErrorRecord",
    "FusionRecord",
    "HealthCheckRecord",
    "McpToolRecord",
    "PluginRecord",
    "RerankerRecord",
    "ScreenRecord",
    "SourceRecord",
    "StorageRecord",
    "hookimpl",
]
