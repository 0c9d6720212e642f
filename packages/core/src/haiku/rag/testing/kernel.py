# ruff: noqa: PT028 - nothing here is a test
"""A kernel that holds what a test gives it, and a configuration over one."""

from collections.abc import Iterable, Mapping
from typing import Any

from haiku.rag.config import AppConfig
from haiku.rag.plugins import builtin
from haiku.rag.plugins.kernel import Kernel
from haiku.rag.plugins.loading import Plugin, collect


def testing_plugin(target: object, *, name: str = "", distribution: str = "", version: str = "0") -> Plugin:
    """A module, or any object with hooks, as a loaded plugin.

    Without a name it is called after its module or class: `acme_rerank.plugin` is `acme_rerank`. What is wrong with
    its hooks or records is raised as `TypeError` or `ValueError`.
    """
    module = getattr(target, "__name__", type(target).__name__)
    called = name or module.removesuffix(".plugin").rpartition(".")[2]
    return Plugin(
        name=called,
        distribution=distribution or called,
        version=version,
        module=module,
        records=collect(target),
        target=target,
    )


def testing_kernel(*plugins: object, prefer: Iterable[str] = ()) -> Kernel:
    """A kernel of core's own plugin and these: modules, objects with hooks, or results of `testing_plugin`."""
    core = testing_plugin(builtin, name="core", distribution="haiku-rag-core")
    given = [plugin if isinstance(plugin, Plugin) else testing_plugin(plugin) for plugin in plugins]
    return Kernel([core, *given], prefer=prefer)


def testing_config(data: Mapping[str, Any], *plugins: object) -> AppConfig:
    """The configuration, over `testing_kernel(*plugins)`."""
    return AppConfig.model_validate(data, context={"kernel": testing_kernel(*plugins)})


for _function in (testing_plugin, testing_kernel, testing_config):
    vars(_function)["__test__"] = False  # their names look like tests to pytest
