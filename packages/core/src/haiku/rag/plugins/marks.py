"""The pluggy markers; project name, hook prefix and entry-point group are all `haiku_rag`."""

import pluggy

PROJECT = "haiku_rag"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
