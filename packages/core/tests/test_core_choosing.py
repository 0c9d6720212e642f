"""Where several plugins serve one purpose, none of them is silently first."""

from collections.abc import Iterable

import pytest

from haiku.rag.client.conversion import Conversion
from haiku.rag.config import AppConfig
from haiku.rag.contracts.conversion import SourceContent
from haiku.rag.contracts.storage import OpenMode
from haiku.rag.errors import PluginConflictError
from haiku.rag.federation.scope import DatabaseScope
from haiku.rag.federation.session import Session
from haiku.rag.plugins import ConverterRecord, SourceRecord, StorageRecord, builtin, hookimpl
from haiku.rag.plugins.kernel import Kernel
from haiku.rag.testing import plugin, testing_plugin

pytestmark = pytest.mark.anyio


class Rival:
    """Serves what the testing plugin serves, under other names."""

    @hookimpl
    def haiku_rag_register_converter(self) -> Iterable[ConverterRecord]:
        yield ConverterRecord(name="rival", summary="s", factory="a:b", suffixes=frozenset({".md"}))

    @hookimpl
    def haiku_rag_register_source(self) -> Iterable[SourceRecord]:
        yield SourceRecord(name="rival", summary="s", factory="a:b", schemes=("file",))

    @hookimpl
    def haiku_rag_register_storage(self) -> Iterable[StorageRecord]:
        yield StorageRecord(name="rival", summary="s", factory="a:b", sections=("memory",), suffixes=(".twice",))
        yield StorageRecord(name="other", summary="s", factory="a:b", suffixes=(".twice",))


def rivalled(*, prefer: tuple[str, ...] = ()) -> AppConfig:
    plugins = [
        testing_plugin(builtin, name="core", distribution="haiku-rag-core"),
        testing_plugin(plugin, name="testing", distribution="testing"),
        testing_plugin(Rival(), name="rival", distribution="rival-rag", version="2.0"),
    ]
    return AppConfig.model_validate({}, context={"kernel": Kernel(plugins, prefer=prefer)})


def conversion(config: AppConfig) -> Conversion:
    return Conversion(Session(config, DatabaseScope.resolve(config, database_path="x.db"), OpenMode.READ))


async def test_two_converters_of_one_suffix_are_named() -> None:
    with pytest.raises(PluginConflictError, match=r"reading '\.md': rival-rag 2\.0 .* and testing"):
        await conversion(rivalled()).convert(SourceContent(uri="a.md", name="a.md", data=b"text"))


async def test_a_preferred_plugin_reads() -> None:
    parsed = await conversion(rivalled(prefer=("testing",))).convert(
        SourceContent(uri="a.md", name="a.md", data=b"words")
    )
    assert "words" in parsed.content


def test_two_sources_of_one_scheme_are_named() -> None:
    with pytest.raises(PluginConflictError, match="'file://' sources"):
        conversion(rivalled()).source_for("a.md")


def test_two_engines_of_one_suffix_are_named() -> None:
    with pytest.raises(PluginConflictError, match=r"databases named '\*\.twice'"):
        DatabaseScope.resolve(rivalled(), database_path="notes.twice")


def test_two_engines_of_one_section_are_named() -> None:
    config = rivalled()
    configured = AppConfig.model_validate(
        {"memory": {"databases": {"a": "memory://a"}}}, context={"kernel": config.kernel}
    )
    with pytest.raises(PluginConflictError, match="the section 'memory'"):
        DatabaseScope.resolve(configured)
