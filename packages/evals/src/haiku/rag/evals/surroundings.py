"""What a measurement was made with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from haiku.rag.plugins.kernel import Kernel

LIBRARIES = ("lancedb", "onnxruntime", "numpy", "pyarrow", "ir-measures", "scipy")


def versions(kernel: Kernel) -> dict[str, str]:
    """The versions of the plugins' distributions, and of libraries that a figure may depend on."""
    plugins = {plugin.distribution: plugin.version for plugin in kernel.plugins if plugin.status == "loaded"}
    libraries = {name: found for name in LIBRARIES if (found := _version(name)) is not None}
    return dict(sorted({**plugins, **libraries}.items()))


def machine() -> dict[str, str]:
    """The system, its processors and the Python."""
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "processors": str(os.cpu_count()),
        "python": platform.python_version(),
    }


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
