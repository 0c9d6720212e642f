"""The whole configuration: sections, unknown keys, secrets, and what nothing installed reads."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from haiku.rag.config import AppConfig
from haiku.rag.config.file import describe
from haiku.rag.errors import HaikuRagError
from haiku.rag.plugins.kernel import Kernel
from haiku.rag.testing import plugin as memory_plugin
from haiku.rag.testing import testing_config, testing_kernel

SECRET = "sk-do-not-show-7f3a"


def refused(data: Any) -> str:
    """What is said of a configuration that must not be accepted."""
    with pytest.raises(ValidationError) as caught:
        testing_config(data, memory_plugin)
    return describe(caught.value)


def test_a_whole_configuration_is_made_in_python() -> None:
    config = testing_config({"search": {"limit": 3}, "memory": {"databases": {"a": "memory://a"}}}, memory_plugin)
    assert config.search.limit == 3
    assert list(config.section("memory").databases) == ["a"]


def test_a_section_that_was_not_given_has_its_defaults() -> None:
    config = testing_config({}, memory_plugin)
    assert config.section("memory").databases == {}
    assert config.section("memory") is config.section("memory")


def test_asking_for_a_section_does_not_make_it_one_that_was_given() -> None:
    config = testing_config({"memory_many": None}, memory_plugin)
    config.section("memory")
    assert config.section_names == ("memory_many",)


def test_a_section_that_no_plugin_registers_is_an_error_that_names_it() -> None:
    with pytest.raises(HaikuRagError, match="no config_section 'graph'"):
        testing_config({}, memory_plugin).section("graph")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"serach": {}}, "serach: unknown key 'serach'. Did you mean 'search'?"),
        ({"search": {"limits": 3}}, "search.limits: unknown key 'limits'. Did you mean 'limit'?"),
        ({"embeddings": {"model": {"nmae": "x"}}}, "embeddings.model.nmae: unknown key 'nmae'. Did you mean 'name'?"),
        ({"memory": {"database": {}}}, "memory.database: unknown key 'database'. Did you mean 'databases'?"),
        ({"memory": {"databases": {"a": {"location": "x", "tga": "t"}}}}, "memory.databases.a.tga: unknown key 'tga'"),
        ({"zzz": 1}, "zzz: unknown key 'zzz'."),
        ({7: 1}, "7: unknown key '7'."),
        ({"search": {"{oops}": 1}}, "search.{oops}: unknown key '{oops}'."),
    ],
)
def test_an_unknown_key_is_refused_with_its_path_and_the_nearest_known_one(data: dict[Any, Any], said: str) -> None:
    assert refused(data).startswith(said)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"search": {"limit": 0}}, "search.limit"),
        ({"search": {"timeout_s": float("inf")}}, "search.timeout_s"),
        ({"search": {"timeout_s": 0}}, "search.timeout_s"),
        ({"search": {"weights": {"a": -1}}}, "search.weights.a"),
        ({"search": {"weights": {"a": float("nan")}}}, "search.weights.a"),
        ({"search": {"boosts": {"a": float("inf")}}}, "search.boosts.a"),
        ({"search": {"min_score": float("nan")}}, "search.min_score"),
        ({"search": {"on_unavailable": "ignore"}}, "search.on_unavailable"),
        ({"search": {"fusion": " "}}, "search.fusion"),
        ({"search": "text"}, "search"),
        ({"embeddings": {"model": {"vector_dim": 0}}}, "embeddings.model.vector_dim"),
        ({"embeddings": {"model": {"provider": "a\tb"}}}, "embeddings.model.provider"),
        ({"reranking": {"model": {}}}, "reranking.model.provider"),
        ({"processing": {"chunk_size": 4}}, "processing.chunk_size"),
        ({"plugins": {"disabled": [""]}}, "plugins.disabled.0"),
        ({"plugins": "all"}, "plugins"),
        ({"hooks": [{"options": {}}]}, "hooks.0.name"),
        ({"memory": {"databases": ["a"]}}, "memory.databases"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_the_path_of_its_key(data: dict[str, Any], path: str) -> None:
    assert f"{path}" in refused(data)


def test_data_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(ValidationError):
        AppConfig.model_validate(["search"])


@pytest.mark.parametrize(
    "data",
    [
        {"embeddings": {"model": {"api_key": {"nested": SECRET}}}},
        {"embeddings": {"model": {"api_key": [SECRET]}}},
        {"embeddings": {"model": {"vector_dim": SECRET}}},
        {"qa": {"model": {"provider": "x", "max_tokens": SECRET}}},
        {"memory": {"storage_options": {"key": [SECRET]}}},
        {"memory": {"storage_options": SECRET}},
        {"search": {"on_unavailable": {"x": SECRET}}},
        {"hooks": [{"name": "acme", "options": SECRET}]},
    ],
)
def test_a_value_never_shows_in_the_text_of_an_error(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        testing_config(data, memory_plugin)
    assert SECRET not in f"{caught.value} {caught.value!r} {describe(caught.value)}"


def test_secrets_and_locations_do_not_show_in_the_configuration_as_text() -> None:
    config = testing_config(
        {
            "embeddings": {"model": {"provider": "hash", "api_key": SECRET, "base_url": f"http://u:{SECRET}@h"}},
            "qa": {"model": {"provider": "x", "extra_body": {"token": SECRET}}},
            "memory": {"databases": {"a": f"memory://{SECRET}"}, "storage_options": {"secret": SECRET}},
            "hooks": [{"name": "acme", "options": {"token": SECRET}}],
        },
        memory_plugin,
    )
    assert SECRET not in f"{config!r} {config.section('memory')!r}"


def test_a_section_of_something_that_is_not_installed_is_accepted_and_listed() -> None:
    config = testing_config({"ingester": {"databases": ["a"]}, "mcp": {"port": 1}}, memory_plugin)
    assert dict(config.inert_sections) == {"ingester": {"databases": ["a"]}, "mcp": {"port": 1}}
    assert config.section_names == ()


def test_a_section_of_a_plugin_that_is_switched_off_is_accepted() -> None:
    off = testing_kernel(memory_plugin)
    kernel = Kernel([*off.plugins[:1], _disabled("acme")])
    config = AppConfig.model_validate({"acme": {"anything": 1}}, context={"kernel": kernel})
    assert "acme" in config.inert_sections


def _disabled(name: str) -> Any:
    from haiku.rag.plugins.loading import Plugin

    return Plugin(name=name, distribution=name, version="1", module=name, status="disabled", reason="it is disabled")


def test_a_hook_may_be_given_by_its_name_alone() -> None:
    config = testing_config({"hooks": ["acme", {"name": "other", "options": {"a": 1}}]}, memory_plugin)
    assert [(entry.name, entry.options) for entry in config.hooks] == [("acme", {}), ("other", {"a": 1})]


def test_the_kernel_follows_the_plugins_section() -> None:
    config = AppConfig.model_validate({"plugins": {"disabled": ["haiku-rag-core"]}})
    assert [plugin.status for plugin in config.kernel.plugins if plugin.name == "core"] == ["disabled"]


@pytest.mark.parametrize("value", [None, ""])
def test_a_data_directory_left_empty_is_the_platforms_own(value: str | None) -> None:
    config = testing_config({"storage": {"data_dir": value}}, memory_plugin)
    assert config.storage.data_dir == testing_config({}, memory_plugin).storage.data_dir


def test_a_data_directory_expands_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = testing_config({"storage": {"data_dir": "~/here"}}, memory_plugin)
    assert config.storage.data_dir == tmp_path / "here"
    assert testing_config({"storage": {"data_dir": tmp_path}}, memory_plugin).storage.data_dir == tmp_path


def test_without_a_file_relative_paths_are_taken_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = testing_config({}, memory_plugin)
    monkeypatch.chdir(tmp_path)
    assert config.resolve_path("a/b") == tmp_path / "a" / "b"


def test_a_plugins_section_that_is_not_valid_is_refused_with_the_path_of_its_key() -> None:
    with pytest.raises(ValidationError) as caught:
        AppConfig.model_validate({"plugins": {"disabled": "core"}})
    assert "plugins.disabled: " in describe(caught.value)
