"""Sources that fail in their own way, addresses that hold secrets, and a working directory that was removed."""

import os
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from haiku.rag.client import HaikuRAG
from haiku.rag.client.files import local_path
from haiku.rag.config import AppConfig, find_config
from haiku.rag.contracts import SourceContent
from haiku.rag.errors import ConfigError, SourceUnavailableError, UnknownDatabaseError, UnsupportedSourceError
from haiku.rag.federation.scope import DatabaseScope
from haiku.rag.models.text import shown_address
from haiku.rag.plugins import SourceRecord, hookimpl
from haiku.rag.testing import plugin as memory_plugin
from haiku.rag.testing import testing_config, testing_plugin

pytestmark = pytest.mark.anyio
ADDRESS = "odd://user:hunter2@host/b?token=sesame"


class Odd:
    """A source `odd://` of two documents, whose second one breaks it, or which breaks at once."""

    def __init__(self, config: object = None) -> None:
        """Takes nothing from the configuration."""

    @hookimpl
    def haiku_rag_register_source(self) -> list[SourceRecord]:
        return [SourceRecord(name="odd", summary="s", factory=f"{__name__}:Odd", schemes=("odd",))]

    async def discover(self, location: str) -> AsyncIterator[str]:
        if location == "odd://user:hunter2@broken":
            raise RuntimeError(location)
        yield "odd://host/a"
        yield ADDRESS

    async def fetch(self, uri: str) -> SourceContent:
        if uri == ADDRESS:
            raise ExceptionGroup(f"of {uri}", [OverflowError(uri)])
        return SourceContent(uri=uri, name="a.txt", data=b"some text")


def client(name: str) -> HaikuRAG:
    data = {"memory": {"server": name, "databases": {"a": "memory://a"}}, "embeddings": {"model": {"provider": "hash"}}}
    return HaikuRAG(config=testing_config(data, memory_plugin, testing_plugin(Odd())), create=True)


async def test_a_source_that_breaks_on_one_document_costs_that_document_and_shows_no_secret() -> None:
    async with client("odd-one") as covered:
        steps = [step async for step in covered.ingest("odd://host")]
    failures = [step.failure for step in steps if step.failure]
    assert [document.uri for step in steps for document in step.stored] == ["odd://host/a"]
    assert [(failure.uri, failure.reason) for failure in failures] == [
        ("odd://host/b", "'odd://host/b' could not be read (ExceptionGroup).")
    ]


async def test_a_source_that_breaks_at_once_is_an_unsupported_source_without_the_original_behind_it() -> None:
    async with client("odd-all") as covered:
        with pytest.raises(UnsupportedSourceError) as caught:
            _ = [step async for step in covered.ingest("odd://user:hunter2@broken")]
    assert str(caught.value) == "'odd://broken' could not be read (RuntimeError)."
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://a:b@example.org:8443/path?key=1#x", "https://example.org:8443/path"),
        ("http://[broken/secret", "http://…"),
        ("notes/a?b#c.md", "notes/a?b#c.md"),
        ("file:///a%3Fb", "file:///a%3Fb"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(address: str, shown: str) -> None:
    assert shown_address(address) == shown


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory is one that was removed."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    os.rmdir(tmp_path / "gone")  # noqa: PTH106 - a relative look-up must not come between


@pytest.mark.usefixtures("nowhere")
def test_without_a_working_directory_only_what_is_relative_to_it_is_refused(tmp_path: Path) -> None:
    config: Any = AppConfig.model_validate({})
    assert find_config() is None
    assert config.resolve_path(str(tmp_path)) == tmp_path
    assert local_path(str(tmp_path)) == tmp_path
    for use in (
        local_path,
        config.resolve_path,
        lambda path: DatabaseScope.resolve(testing_config({}, memory_plugin), database_path=path),
    ):
        with pytest.raises(ConfigError, match=r"is relative to the working directory, which was removed\."):
            use("notes")


def test_a_data_folder_with_a_nul_character_is_refused() -> None:
    with pytest.raises(ValueError, match="must not hold a NUL character"):
        AppConfig.model_validate({"storage": {"data_dir": "a\0b"}})


async def test_the_command_for_a_missing_database_survives_a_shell_whatever_its_name() -> None:
    name = "d'; echo x #"
    data = {"memory": {"server": "no-such", "databases": {name: "memory://a"}}}
    with pytest.raises(SourceUnavailableError) as caught:
        async with HaikuRAG(config=testing_config(data, memory_plugin)):
            pass
    command = str(caught.value).partition("Create it with: ")[2].rstrip(".")
    assert shlex.split(command) == ["haiku-rag", "--db-name", name, "init"]


async def test_a_limit_beyond_every_number_that_engines_count_in_gives_all() -> None:
    async with client("odd-limit") as covered:
        await covered.create_document("some text")
        assert len(await covered.search("text", limit=10**30)) == 1
        assert len(await covered.search("text", limit=2**63 - 1)) == 1


def test_a_name_that_is_no_text_is_an_unknown_database() -> None:
    scope = DatabaseScope.resolve(testing_config({}, memory_plugin))
    with pytest.raises(UnknownDatabaseError, match="no database '1' is covered"):
        scope.chosen([1])  # type: ignore[list-item]  # what is tested
