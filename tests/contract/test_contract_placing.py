"""Contract P and G: placing and naming databases, and reading at a tag."""

import logging
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from haiku.rag.client import DatabaseScope, HaikuRAG
from haiku.rag.config import AppConfig, file, load_config
from haiku.rag.config.file import describe
from haiku.rag.errors import AmbiguousDatabaseError, ConfigError, SourceUnavailableError, TagError, UnknownPluginError
from haiku.rag.plugins import ConfigSectionRecord, hookimpl
from haiku.rag.testing import plugin as memory_plugin
from haiku.rag.testing import testing_config

from .world import QUERY, World

pytestmark = pytest.mark.anyio


def config(*, memory: Any = None, **sections: Any) -> AppConfig:
    placed = {} if memory is None else {"memory": {"databases": memory}}
    return testing_config({**placed, **sections}, memory_plugin)


def where(found: AppConfig, **selector: Any) -> dict[str, str]:
    scope = DatabaseScope.resolve(found, **selector)
    return {ref.name: ref.location for ref in scope.databases}


def test_P1_a_name_maps_to_a_path_or_a_uri_in_configured_order() -> None:
    placed = {name: f"{name}://bucket/db" for name in ("s3", "gs", "az", "db")} | {"local": "/data/local.lancedb"}
    assert where(config(memory=placed)) == placed
    assert list(where(config(memory=placed))) == list(placed)


def test_P1_the_scope_holds_the_databases_of_every_engine_in_configured_order() -> None:
    found = testing_config(
        {
            "memory_many": {"databases": {"z": "memory://z"}},
            "memory": {"databases": {"b": "memory://b", "a": "memory://a"}},
        },
        memory_plugin,
    )
    assert [(ref.name, ref.storage) for ref in DatabaseScope.resolve(found).databases] == [
        ("z", "memory-many"),
        ("b", "memory"),
        ("a", "memory"),
    ]


def test_P1_one_name_in_two_sections_is_refused_with_the_path_of_its_key() -> None:
    sections = {name: {"databases": {"a": f"{name}://a"}} for name in ("memory", "memory_many")}
    with pytest.raises(ConfigError, match="memory_many.databases.a: another storage section"):
        DatabaseScope.resolve(testing_config(sections, memory_plugin))


def test_P1_a_section_that_is_no_engines_places_nothing() -> None:
    class Settings:
        @hookimpl
        def haiku_rag_register_config_section(self) -> list[ConfigSectionRecord]:
            factory = "haiku.rag.config.section:StorageSection"
            return [ConfigSectionRecord(name="acme", summary="s", factory=factory)]

    sections = {"acme": {"databases": {"x": "/x"}}, "memory": {"databases": {"a": "memory://a"}}}
    assert where(testing_config(sections, memory_plugin, Settings())) == {"a": "memory://a"}


def test_P1_databases_of_an_engine_that_is_not_installed_are_not_passed_over() -> None:
    for entry in ("/data/a", {"location": "/data/a"}):
        with pytest.raises(UnknownPluginError, match=r"under 'lancedb'.*pip install 'haiku-rag-core\[lancedb\]'"):
            DatabaseScope.resolve(config(lancedb={"databases": {"a": entry}}))
    assert where(config(ingester={"databases": ["a"]})) == where(config())


def test_P2_with_nothing_configured_there_is_one_database_in_the_data_directory(tmp_path: Path) -> None:
    found = config(storage={"data_dir": str(tmp_path)})
    assert where(found) == {"haiku.rag": str(tmp_path / "haiku.rag.memory")}


def test_P2_the_default_storage_places_it_at_haiku_rag_lancedb(tmp_path: Path) -> None:
    found = AppConfig.model_validate({"storage": {"data_dir": str(tmp_path)}})
    assert where(found) == {"haiku.rag": str(tmp_path / "haiku.rag.lancedb")}


async def test_P2_one_database_is_placed_exactly_like_several(world: World) -> None:
    await world.near("a", one=0.9)
    async with world.client("a") as client:
        (hit,) = await client.search(QUERY)
        assert (client.source_names, client.source, hit.source) == (("a",), "a", "a")


@pytest.mark.parametrize("entry", ["db", "db-notes", "dbs/x", "a b%#ü"])
def test_P3_a_location_without_a_scheme_is_a_local_path_also_when_it_begins_with_db(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert where(config(memory={"a": entry})) == {"a": str(tmp_path / entry)}
    (ref,) = DatabaseScope.resolve(config(memory={"a": entry})).databases
    assert ref.path == tmp_path / entry


def test_P3_the_home_directory_expands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert where(config(memory={"a": "~/a"})) == {"a": str(tmp_path / "a")}
    assert where(config(), database_path="~/b.memory") == {"b": str(tmp_path / "b.memory")}


def test_P3_an_unknown_home_directory_is_a_path_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert where(config(memory={"a": "~no-such-user/a"})) == {"a": str(tmp_path / "~no-such-user/a")}


def test_P3_a_relative_path_is_taken_from_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    path = tmp_path / "conf" / "haiku.rag.yaml"
    path.write_text("lancedb: {databases: {a: dbs/a.lancedb}}\nstorage: {data_dir: data}\n")
    monkeypatch.chdir(tmp_path)
    assert where(load_config(path)) == {"a": str(tmp_path / "conf" / "dbs" / "a.lancedb")}
    path.write_text("storage: {data_dir: data}\n")
    assert where(load_config("conf/haiku.rag.yaml")) == {
        "haiku.rag": str(tmp_path / "conf" / "data" / "haiku.rag.lancedb")
    }


async def test_P3_a_missing_local_database_is_reported_as_missing_and_never_created_by_a_read(tmp_path: Path) -> None:
    found = AppConfig.model_validate({"lancedb": {"databases": {"a": str(tmp_path / "a"), "b": str(tmp_path / "b")}}})
    async with HaikuRAG(config=found) as client:
        for read in (client.search("x"), client.list_documents(), client.count_documents(), client.reader_for("a")):
            with pytest.raises(SourceUnavailableError, match="database 'a' does not exist"):
                await read
    assert list(tmp_path.iterdir()) == []


async def test_P4_results_and_documents_carry_the_configured_name(world: World) -> None:
    for names in (("one",), ("one", "two")):
        await world.near("one", chunk=0.9)
        await world.near("two")
        async with world.client(*names) as client:
            (hit,) = await client.search(QUERY)
            (listed,) = await client.list_documents()
            document = await client.get_document_by_id("doc-chunk")
            chunk = await client.get_chunk_by_id("chunk")
            assert document is not None
            assert chunk is not None
            assert {hit.source, listed.source, document.source, chunk.source} == {"one"}


async def test_P5_a_location_appears_in_no_result_and_no_log_line(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    placed = {name: f"memory://marker-7f3a-{name}" for name in ("ok", "gone")}
    world.server.create(placed["ok"], world.identity)
    with caplog.at_level(logging.INFO):
        async with HaikuRAG(config=world.config(placed), read_only=True) as client:
            found = await client.search(QUERY, on_unavailable="skip")
            scope = DatabaseScope.resolve(client.config)
            said = f"{found!r} {found.report!r} {client.config!r} {client.source_names} {scope!r} {scope.databases[0]}"
    assert found.report.left_out
    assert "marker-7f3a" not in said + caplog.text


def test_P6_resolving_reports_what_a_configuration_covers_and_opens_nothing(world: World) -> None:
    found = world.config({"a": "memory://a", "b": {"location": "memory://b", "tag": "v1"}})
    scope = DatabaseScope.resolve(found)
    assert [(ref.name, ref.location, ref.tag) for ref in scope.databases] == [
        ("a", "memory://a", None),
        ("b", "memory://b", "v1"),
    ]
    assert isinstance(scope.databases, tuple)
    assert world.total("open") == 0
    with pytest.raises(ValueError, match="at least one"):
        DatabaseScope(())


@pytest.mark.parametrize(
    ("memory", "path"),
    [
        ({" ": "memory://a"}, "memory.databases. "),
        ({"a": "  "}, "memory.databases.a"),
        ({"a": ""}, "memory.databases.a"),
        ({"a": {"location": " "}}, "memory.databases.a.location"),
        ({"a": {"location": "x", "tag": ""}}, "memory.databases.a.tag"),
        ({"a": {"location": "x", "tags": "t"}}, "memory.databases.a.tags"),
        ({"a": {"tag": "t"}}, "memory.databases.a.location"),
        ({"a": None}, "memory.databases.a"),
        ({"a": "x\0y"}, "memory.databases.a"),
    ],
)
def test_P7_blank_names_locations_and_tags_and_unknown_keys_are_refused_with_the_keys_path(
    memory: dict[str, Any], path: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        config(memory=memory)
    assert path in describe(caught.value)


def test_P8_the_single_location_key_of_older_tools_is_refused_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / file.FILE_NAME
    path.write_text("lancedb: {uri: s3://marker-7f3a/db}\n")
    with pytest.raises(ConfigError, match=r"lancedb: 'uri'.*'databases'") as caught:
        load_config(path)
    assert "marker-7f3a" not in str(caught.value)


def tagged(world: World) -> AppConfig:
    return world.config({"live": "memory://x", "old": {"location": "memory://x", "tag": "v1"}})


def test_G1_an_entry_with_a_tag_is_read_only(world: World) -> None:
    found = tagged(world)
    assert HaikuRAG(config=found, sources=["old"]).is_read_only
    assert not HaikuRAG(config=found, sources=["live"]).is_read_only
    assert DatabaseScope.resolve(found, database_name="old").databases[0].tag == "v1"


async def test_G1_the_tag_reaches_the_storage(world: World) -> None:
    world.empty("x")
    async with HaikuRAG(config=tagged(world)) as client:
        with pytest.raises(TagError, match="'old' has no tag 'v1'"):
            await client.search(QUERY, sources=["old"])


def test_G2_a_tag_on_a_tagged_entry_is_refused(world: World) -> None:
    found = tagged(world)
    with pytest.raises(AmbiguousDatabaseError, match="'old' is already read at the tag 'v1'"):
        DatabaseScope.resolve(found, database_name="old", tag="v2")
    with pytest.raises(AmbiguousDatabaseError, match="'old' is already read at the tag 'v1'"):
        HaikuRAG(config=found, sources=["old"], tag="v2")


def test_G2_a_tag_always_means_one_database(world: World) -> None:
    found = tagged(world)
    with pytest.raises(AmbiguousDatabaseError, match="'live', 'old'"):
        HaikuRAG(config=found, tag="v2")
    with pytest.raises(AmbiguousDatabaseError, match="'live', 'old'"):
        DatabaseScope.resolve(found, tag="v2")
    assert DatabaseScope.resolve(found, database_name="live", tag="v2").databases[0].tag == "v2"
    assert DatabaseScope.resolve(config(), database_path="x.memory", tag="v2").databases[0].tag == "v2"


@pytest.mark.parametrize("selector", [{"database_name": "live"}, {}])
def test_G2_a_blank_tag_is_refused(world: World, selector: dict[str, Any]) -> None:
    with pytest.raises(TagError, match="the tag is blank"):
        DatabaseScope.resolve(world.config({"live": "memory://x"}), tag=" ", **selector)
    with pytest.raises(TagError, match="the tag is blank"):
        DatabaseScope.resolve(config(), database_path="x.memory", tag="")


async def test_G3_whatever_works_on_the_live_database_refuses_a_tagged_entry_by_name(world: World) -> None:
    client = HaikuRAG(config=tagged(world), sources=["old"])
    operations = [
        client.create_document("text"),
        client.create_document_from_source("/nowhere"),
        client.import_documents([]),
        client.update_document("d", title="t"),
        client.delete_document("d"),
        anext(client.ingest("/nowhere")),
        anext(client.rebuild()),
        client.vacuum(),
        client.create_index(),
        client.tags(),
        client.create_tag("t"),
        client.delete_tag("t"),
        client.restore_tag("v1"),
        client.history(),
    ]
    for operation in operations:
        with pytest.raises(TagError, match="works on the live database, and 'old'") as caught:
            await operation
        assert caught.value.source == "old"
    with pytest.raises(TagError, match="creating a database works on the live database"):
        HaikuRAG(config=tagged(world), sources=["old"], create=True)


def test_G4_entries_may_share_a_location_at_different_tags(world: World) -> None:
    scope = DatabaseScope.resolve(tagged(world))
    assert [(ref.location, ref.tag) for ref in scope.databases] == [("memory://x", None), ("memory://x", "v1")]


async def test_G1_a_tagged_entry_reads_what_was_there_when_the_tag_was_made(world: World) -> None:
    await world.near("x", one=0.9)
    async with HaikuRAG(config=world.config({"live": "memory://x"})) as client:
        await client.create_tag("v1")
        await client.update_document("doc-one", title="changed")
    await world.near("x", two=0.8)
    async with HaikuRAG(config=tagged(world)) as client:
        seen = [(document.source, document.title) for document in await client.list_documents()]
        assert sorted(seen) == [("live", "changed"), ("live", "two"), ("old", "one")]
        then = await client.reader_for("old")
        with pytest.raises(TagError, match="works on the live database, and 'old'"):
            await then.delete_document("doc-one")


async def test_G4_a_document_that_two_entries_share_comes_back_once_from_each(world: World) -> None:
    await world.near("x", one=0.9)
    async with HaikuRAG(config=world.config({"now": "memory://x", "then": "memory://x"}), read_only=True) as client:
        assert [hit.source for hit in await client.search(QUERY)] == ["now", "then"]
        assert [document.source for document in await client.list_documents()] == ["now", "then"]
        assert await client.count_documents() == 2
