"""Contract E: errors, and what is left out of an answer."""

import logging
import shutil
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from haiku.rag import errors
from haiku.rag.client import HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.contracts import Comparison
from haiku.rag.errors import (
    AmbiguousDatabaseError,
    ConfigMismatchError,
    FilterError,
    HaikuRagError,
    MigrationRequiredError,
    PluginError,
    ReadOnlyError,
    SourceUnavailableError,
    StorageError,
    TagError,
)
from haiku.rag.plugins import ErrorRecord, hookimpl
from haiku.rag.testing import memory_server

from .spoken import MARKER, all_that_is_said
from .world import QUERY, World, ids

pytestmark = pytest.mark.anyio
Use = Callable[[HaikuRAG], Awaitable[Any]]
READS: dict[str, Use] = {
    "search": lambda client: client.search(QUERY),
    "full text": lambda client: client.search(QUERY, search_type="fts"),
    "list": lambda client: client.list_documents(),
    "count": lambda client: client.count_documents(),
    "by id": lambda client: client.get_document_by_id("d"),
    "by uri": lambda client: client.get_document_by_uri("d"),
    "chunk": lambda client: client.get_chunk_by_id("d"),
    "resolve": lambda client: client.resolve_document("d"),
    "picture": lambda client: client.get_picture_bytes("d", "r", source="a"),
    "reader": lambda client: client.reader_for("a"),
}


@pytest.fixture
def marked(world: World) -> World:
    """A database `a` at a location that must not be told, and one `b` beside it."""
    world.empty("a", "b")
    world.places["a"] = f"memory://{MARKER}"
    world.server.states[f"memory://{MARKER}"] = world.server.states["memory://a"]
    return world


@pytest.mark.parametrize("read", READS)
async def test_E1_a_database_that_cannot_be_opened_is_named_and_its_location_is_not(
    marked: World, read: str, caplog: pytest.LogCaptureFixture
) -> None:
    marked.server.fail(f"memory://{MARKER}", OSError(f"cannot reach memory://{MARKER}"), "open")
    with caplog.at_level(logging.INFO):
        async with marked.client("a", "b") as client:
            with pytest.raises(SourceUnavailableError) as caught:
                await READS[read](client)
    error = caught.value
    assert str(error) == (
        "database 'a' cannot be read (OSError). "
        "Check its entry in the configuration and whether its store is reachable."
    )
    assert error.source == "a"
    assert error.__cause__ is error.__context__ is None
    assert MARKER not in all_that_is_said(error) + caplog.text


async def test_E1_a_database_that_is_missing_is_told_with_the_command_that_makes_it(marked: World) -> None:
    marked.server.drop(f"memory://{MARKER}")
    async with marked.client("a", "b") as client:
        with pytest.raises(SourceUnavailableError) as caught:
            await client.search(QUERY)
    assert str(caught.value) == "database 'a' does not exist. Create it with: haiku-rag --db-name 'a' init"
    assert MARKER not in all_that_is_said(caught.value)


async def test_E1_the_same_holds_for_a_client_over_one_database(marked: World) -> None:
    marked.server.fail(f"memory://{MARKER}", OSError(f"cannot reach memory://{MARKER}"))
    with pytest.raises(SourceUnavailableError, match="'a'") as caught:
        await marked.client("a").__aenter__()
    assert MARKER not in all_that_is_said(caught.value)


FAILING = {
    "search": "search",
    "full text": "search",
    "list": "list_documents",
    "count": "count_documents",
    "by id": "document_by_id",
    "by uri": "document_by_uri",
    "chunk": "chunks_by_id",
    "resolve": "document_by_title",
    "picture": "picture",
}


@pytest.mark.parametrize("read", FAILING)
@pytest.mark.parametrize("broken", [OSError, StorageError, FileNotFoundError])
async def test_E2_the_same_holds_for_a_failure_after_the_open(
    marked: World, read: str, broken: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    await marked.near("a", one=0.9)
    async with marked.client("a", "b") as client:
        await client.count_documents()
        failure = broken(f"lost memory://{MARKER}")
        failure.__cause__ = OSError(MARKER)
        marked.server.fail(f"memory://{MARKER}", failure, FAILING[read])
        with caplog.at_level(logging.INFO), pytest.raises(SourceUnavailableError, match="database 'a'") as caught:
            await READS[read](client)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert MARKER not in all_that_is_said(caught.value) + caplog.text


async def test_E2_a_filter_that_cannot_be_counted_is_the_databases_failure(marked: World) -> None:
    async with marked.client("a") as client:
        marked.server.fail(f"memory://{MARKER}", OSError(MARKER), "count_documents")
        with pytest.raises(SourceUnavailableError, match="database 'a'") as caught:
            await client.search(QUERY, filter=Comparison("title", "=", "x"))
        assert MARKER not in all_that_is_said(caught.value)


@pytest.mark.parametrize("operation", ["chunks_by_id", "picture"])
async def test_E2_enrichment_that_fails_is_the_databases_failure(marked: World, operation: str) -> None:
    await marked.pictured("a", {}, one=0.9)
    async with marked.client("a", "b") as client:
        marked.server.fail(f"memory://{MARKER}", OSError(MARKER), operation)
        with pytest.raises(SourceUnavailableError, match="database 'a'") as caught:
            await client.search(QUERY, include_images=True)
        assert MARKER not in all_that_is_said(caught.value)


@pytest.mark.parametrize("kept", [MigrationRequiredError, ConfigMismatchError, TagError, ReadOnlyError])
async def test_E3_some_failures_keep_their_type_and_name_the_database_once(
    marked: World, kept: type[HaikuRagError]
) -> None:
    for words in (f"memory://{MARKER} is at version 2.", "database 'a' is at version 2.", "It is at version 2."):
        marked.server.fail(f"memory://{MARKER}", kept(words), "open")
        async with marked.client("a", "b") as client:
            with pytest.raises(kept) as caught:
                await client.search(QUERY)
        assert type(caught.value) is kept
        assert str(caught.value).count("'a'") == 1
        assert caught.value.source == "a"
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert MARKER not in all_that_is_said(caught.value)


async def test_E3_a_write_to_a_database_that_is_read_only_is_named(marked: World) -> None:
    async with marked.client("a") as client:
        with pytest.raises(ReadOnlyError, match="database 'a'") as caught:
            await client.create_document("text")
    assert caught.value.source == "a"


async def test_E4_a_path_that_the_caller_typed_may_be_named(world: World, tmp_path: Path) -> None:
    path = tmp_path / "mine.memory"
    with pytest.raises(SourceUnavailableError) as caught:
        await HaikuRAG(path, config=world.config([])).__aenter__()
    assert str(caught.value) == (
        f"database 'mine' at '{path}' does not exist. Create it with: haiku-rag init --db '{path}'"
    )
    world.server.create(str(path), world.identity)
    world.server.fail(str(path), OSError("no space on the moon\nmore"))
    with pytest.raises(SourceUnavailableError, match=f"'mine' at '{path}' cannot be read: no space on the moon"):
        await HaikuRAG(path, config=world.config([])).__aenter__()
    world.server.fail(str(path), StorageError("the engine's own words", source="mine"))
    with pytest.raises(StorageError, match="the engine's own words"):
        await HaikuRAG(path, config=world.config([])).__aenter__()


def test_E5_every_error_derives_from_one_root_and_keeps_its_name() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), HaikuRagError)
        assert getattr(errors, name).__name__ == name


async def test_E5_an_error_about_one_database_carries_its_name(marked: World) -> None:
    marked.server.fail(f"memory://{MARKER}", OSError("x"))
    async with marked.client("a", "b") as client:
        for use in READS.values():
            with pytest.raises(HaikuRagError) as caught:
                await use(client)
            assert caught.value.source == "a"


async def test_E5_so_does_an_error_of_the_callers_own_that_a_database_raised(marked: World) -> None:
    async with marked.client("a", "b") as client:
        with pytest.raises(FilterError) as caught:
            await client.count_documents(filter="a text", sources=["b"])
    assert caught.value.source == "b"


@pytest.fixture
async def pair(world: World) -> World:
    """A good database `ok`, and one `bad` that holds better passages."""
    await world.near("ok", good=0.5)
    await world.near("bad", best=0.9, next=0.8)
    return world


FAULTS = {
    "open": ("unavailable", "database 'bad' cannot be read (OSError)"),
    "search": ("unavailable", "database 'bad' cannot be read (OSError)"),
    "chunks_by_id": ("unavailable", "database 'bad' cannot be read (OSError)"),
}


@pytest.mark.parametrize("operation", FAULTS)
async def test_E6_by_default_one_unavailable_database_fails_the_query(pair: World, operation: str) -> None:
    pair.server.fail("memory://bad", OSError("x"), operation)
    async with pair.client("ok", "bad") as client:
        choices: list[Any] = [None, "raise", ["bad"], ["ok", "bad"]]
        for choice in choices:
            with pytest.raises(SourceUnavailableError, match="'bad'"):
                await client.search(QUERY, on_unavailable=choice)


@pytest.mark.parametrize("operation", FAULTS)
async def test_E6_skip_answers_from_the_others_and_says_what_was_left_out_and_why(pair: World, operation: str) -> None:
    pair.server.fail("memory://bad", OSError("x"), operation)
    async with pair.client("ok", "bad") as client:
        choices: list[Any] = ["skip", ["ok"], []]
        for choice in choices:
            found = await client.search(QUERY, limit=1, on_unavailable=choice)
            assert ids(found) == [("ok", "good")]
            assert [(entry.source, entry.rank) for entry in found.report.results] == [("ok", 1)]
            (left_out,) = found.report.left_out
            assert (left_out.name, left_out.status) == ("bad", FAULTS[operation][0])
            assert FAULTS[operation][1] in str(left_out.reason)
            assert [entry.status for entry in found.report.databases if entry.name == "ok"] == ["ok"]


async def test_E6_a_database_that_fails_while_pictures_are_read_is_left_out_of_them(world: World) -> None:
    await world.pictured("a", {}, one=0.9)
    await world.near("b", two=0.8)
    world.server.fail("memory://a", OSError("x"), "picture")
    async with world.client("a", "b") as client:
        found = await client.search(QUERY, include_images=True, on_unavailable="skip")
        assert ids(found) == [("a", "one"), ("b", "two")]
        assert [entry.name for entry in found.report.left_out] == ["a"]


async def test_E6_the_configuration_may_say_so(pair: World) -> None:
    pair.server.fail("memory://bad", OSError("x"))
    for choice in ("skip", ["ok"]):
        async with pair.client("ok", "bad", search={"on_unavailable": choice}) as client:
            assert ids(await client.search(QUERY)) == [("ok", "good")]
            assert await client.count_documents() == 1
            with pytest.raises(SourceUnavailableError):
                await client.search(QUERY, on_unavailable="raise")


async def test_E6_listing_and_lookups_say_what_was_left_out_in_the_log(
    pair: World, caplog: pytest.LogCaptureFixture
) -> None:
    pair.server.fail("memory://bad", OSError("x"))
    async with pair.client("bad", "ok", search={"on_unavailable": "skip"}) as client:
        assert [document.title for document in await client.list_documents()] == ["good"]
        assert await client.get_document_by_id("doc-good")
    assert "left out: database 'bad' cannot be read (OSError)" in caplog.text


async def test_E6_missing_empty_late_and_well_each_have_a_status(pair: World) -> None:
    pair.empty("empty")
    pair.empty("late")
    pair.hold("late", "search")
    async with pair.client("ok", "empty", "gone", "late", search={"timeout_s": 0.2}) as client:
        with anyio.fail_after(10):
            found = await client.search(QUERY, on_unavailable="skip")
    assert {entry.name: entry.status for entry in found.report.databases} == {
        "ok": "ok",
        "empty": "empty",
        "gone": "missing",
        "late": "timeout",
    }
    assert ids(found) == [("ok", "good")]
    assert "memory://gone" not in pair.server.states


@pytest.mark.parametrize("operation", ["open", "search", "chunks_by_id"])
async def test_E6_a_database_that_runs_over_the_time_counts_as_unavailable(pair: World, operation: str) -> None:
    pair.hold("bad", operation)
    async with pair.client("ok", "bad", search={"timeout_s": 0.2}) as client:
        with anyio.fail_after(10):
            with pytest.raises(SourceUnavailableError, match="'bad' did not answer in time.*raise search.timeout_s"):
                await client.search(QUERY)
            assert ids(await client.search(QUERY, on_unavailable="skip")) == [("ok", "good")]


@pytest.mark.parametrize("read", [read for read in READS if read not in ("search", "full text")])
async def test_E6_listings_and_lookups_are_bounded_too(marked: World, read: str) -> None:
    marked.hold("a", "open")
    async with marked.client("a", "b", search={"timeout_s": 0.2}) as client:
        with anyio.fail_after(10), pytest.raises(SourceUnavailableError, match="'a' did not answer in time"):
            await READS[read](client)


async def test_E6_opening_the_one_database_is_bounded_too(pair: World) -> None:
    pair.hold("bad", "open")
    with anyio.fail_after(10), pytest.raises(SourceUnavailableError, match="'bad' did not answer in time"):
        await pair.client("bad", search={"timeout_s": 0.2}).__aenter__()


async def test_E6_info_and_a_filter_that_is_counted_first_are_bounded_too(pair: World) -> None:
    async with pair.client("bad", search={"timeout_s": 0.2}) as client:
        pair.hold("bad", "info")
        pair.hold("bad", "count_documents")
        with anyio.fail_after(10), pytest.raises(SourceUnavailableError, match="in time"):
            await client.info()
        with anyio.fail_after(10), pytest.raises(SourceUnavailableError, match="in time"):
            await client.search(QUERY, filter=Comparison("title", "=", "x"), on_unavailable="skip")


@pytest.mark.parametrize("operation", ["open", "search", "chunks_by_id"])
async def test_E6_when_all_fail_it_is_an_error_and_never_an_empty_list(pair: World, operation: str) -> None:
    for name in ("ok", "bad"):
        pair.server.fail(f"memory://{name}", OSError("x"), operation)
    async with pair.client("ok", "bad") as client:
        choices: list[Any] = ["raise", "skip", []]
        for choice in choices:
            with pytest.raises(SourceUnavailableError, match="'ok'|'bad'"):
                await client.search(QUERY, on_unavailable=choice)


async def test_E6_an_error_names_every_database_that_was_wanted_and_failed(pair: World) -> None:
    for name in ("ok", "bad"):
        pair.server.fail(f"memory://{name}", OSError("x"))
    async with pair.client("ok", "bad", search={"on_unavailable": "skip"}) as client:
        for use in (client.search(QUERY), client.list_documents(), client.count_documents()):
            with pytest.raises(SourceUnavailableError, match="'ok'.*'bad'"):
                await use


@pytest.mark.parametrize("choice", ["raise", "skip"])
@pytest.mark.parametrize("operation", ["open", "search", "chunks_by_id"])
async def test_E6_cancellation_is_turned_into_neither(pair: World, choice: Any, operation: str) -> None:
    pair.hold("bad", operation)
    async with pair.client("ok", "bad") as client, anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:

            async def cancel() -> None:
                await pair.entered("bad", operation).wait()
                scope.cancel()

            group.start_soon(cancel)
            await client.search(QUERY, on_unavailable=choice)
            pytest.fail("a cancelled search returned")
        assert scope.cancelled_caught


async def test_E6_an_error_of_the_callers_own_is_never_skipped(pair: World) -> None:
    async with pair.client("ok", "bad") as client:
        for use in (client.search(QUERY, filter="a text", on_unavailable="skip"), client.count_documents(filter="x")):
            with pytest.raises(FilterError):
                await use
        with pytest.raises(ValueError, match="on_unavailable must be"):
            await client.search(QUERY, on_unavailable="ignore")


async def test_E6_a_chunk_that_was_deleted_meanwhile_leaves_its_place_to_the_next(pair: World) -> None:
    gate = pair.hold("bad", "chunks_by_id")
    found: list[Any] = []

    async def ask() -> None:
        found.append(await client.search(QUERY, limit=2))

    async with pair.client("ok", "bad") as client, anyio.create_task_group() as group:
        group.start_soon(ask)
        await pair.entered("bad", "chunks_by_id").wait()
        del pair.server.states["memory://bad"].documents["doc-best"]
        gate.set()
    assert ids(found[0]) == [("bad", "next"), ("ok", "good")]
    assert [(entry.source, entry.chunk_id) for entry in found[0].report.results] == ids(found[0])


async def test_E1_an_error_of_any_kind_that_says_where_a_database_is_is_not_shown(marked: World) -> None:
    marked.server.fail(f"memory://{MARKER}", FilterError(f"no such column in memory://{MARKER}"))
    async with marked.client("a", "b") as client:
        with pytest.raises(SourceUnavailableError, match=r"database 'a' cannot be read \(FilterError\)") as caught:
            await client.search(QUERY)
    assert MARKER not in all_that_is_said(caught.value)


class LocatedError(StorageError):
    """An error whose text says where a database is."""


class Translating:
    """A plugin that answers `haiku_rag_translate_error` as it is told, and registers `LocatedError`."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    @hookimpl
    def haiku_rag_register_error(self) -> list[ErrorRecord]:
        return [ErrorRecord(name="located", summary="s", factory=f"{__name__}:LocatedError", names_location=True)]

    @hookimpl
    def haiku_rag_translate_error(self) -> object:
        if isinstance(self._answer, PluginError | KeyError | AmbiguousDatabaseError):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    "answer", [KeyError(MARKER), PluginError("broken"), AmbiguousDatabaseError("raised"), "no error", OSError(MARKER)]
)
async def test_E1_a_plugin_that_fails_to_translate_costs_its_translation_only(
    marked: World, answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    marked.server.fail(f"memory://{MARKER}", OSError(MARKER))
    config = marked.config(["a", "b"], Translating(answer))
    with caplog.at_level(logging.INFO):
        async with HaikuRAG(config=config, read_only=True) as client:
            with pytest.raises(SourceUnavailableError, match="database 'a' cannot be read") as caught:
                await client.search(QUERY)
    assert MARKER not in all_that_is_said(caught.value) + caplog.text


async def test_E1_an_error_that_says_where_a_database_is_reaches_only_who_gave_the_path(
    marked: World, tmp_path: Path
) -> None:
    marked.server.fail(f"memory://{MARKER}", OSError("x"))
    async with HaikuRAG(config=marked.config(["a", "b"], Translating(LocatedError(f"at {MARKER}")))) as client:
        with pytest.raises(SourceUnavailableError, match=r"database 'a' cannot be read \(LocatedError\)") as caught:
            await client.search(QUERY)
    assert MARKER not in all_that_is_said(caught.value)
    path = tmp_path / "x.memory"
    with pytest.raises(LocatedError, match=MARKER):
        await HaikuRAG(path, config=marked.config([], Translating(LocatedError(f"at {MARKER}")))).__aenter__()


def lancedb(location: str, *, timeout_s: float = 20, **options: str) -> AppConfig:
    return AppConfig.model_validate(
        {
            "lancedb": {"databases": {"dead": location}, "storage_options": options},
            "search": {"timeout_s": timeout_s},
        }
    )


async def told(config: AppConfig, caplog: pytest.LogCaptureFixture, *, writing: bool = True) -> list[str]:
    """All that is said when the one database of a configuration is opened, to read and to write."""
    said = []
    with caplog.at_level(logging.INFO):
        for read_only in (True, False) if writing else (True,):
            with pytest.raises(SourceUnavailableError, match="'dead'") as caught:
                await HaikuRAG(config=config, read_only=read_only).__aenter__()
            assert caught.value.__cause__ is caught.value.__context__ is None
            said.append(all_that_is_said(caught.value))
    return [*said, caplog.text]


async def test_E1_a_missing_local_database_does_not_leak_its_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = await told(lancedb(str(tmp_path / MARKER / f"{MARKER}.lancedb")), caplog)
    assert "'dead' does not exist" in said[0]
    assert MARKER not in " ".join(said)
    assert list(tmp_path.iterdir()) == []


async def test_E1_a_file_in_place_of_a_database_does_not_leak_its_path(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / MARKER).write_text("no database")
    assert MARKER not in " ".join(await told(lancedb(str(tmp_path / MARKER)), caplog))


DEAD = {
    "aws_access_key_id": MARKER,
    "aws_secret_access_key": MARKER,
    "aws_region": "us-east-1",
    "allow_http": "true",
    "client_max_retries": "0",
}


async def test_E1_a_dead_object_store_leaks_neither_bucket_nor_host(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    for host in (f"{MARKER}.localhost", "127.0.0.1"):
        config = lancedb(f"s3://{MARKER}/{MARKER}", timeout_s=60, aws_endpoint=f"http://{host}:{port}", **DEAD)
        said = await told(config, caplog, writing=False)
        assert "could not be opened: the store did not answer" in said[0]
        assert MARKER not in " ".join(said)


async def test_E1_an_object_store_that_never_answers_is_late_and_leaks_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        said = await told(
            lancedb(f"s3://{MARKER}/db", timeout_s=1, aws_endpoint=endpoint, **DEAD), caplog, writing=False
        )
    assert "did not answer in time" in said[0]
    assert MARKER not in " ".join(said)


@pytest.mark.parametrize("read", FAILING)
async def test_E2_a_store_that_goes_away_after_the_open_leaks_nothing(
    tmp_path: Path, read: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / MARKER
    placed = {"databases": {name: str(folder / name) for name in ("a", "b")}, "read_consistency_interval_seconds": 0}
    config = AppConfig.model_validate({"lancedb": placed})
    for name in ("a", "b"):
        one = config.model_copy()
        async with HaikuRAG(config=one, sources=[name], create=True) as client:
            await client.create_document("Pilots wait in the harbour.", uri="u")
    async with HaikuRAG(config=config, read_only=True) as client:
        assert await client.count_documents() == 2
        shutil.rmtree(folder)
        with caplog.at_level(logging.INFO), pytest.raises(HaikuRagError, match="'a'|'b'") as caught:
            await READS[read](client)
    assert isinstance(caught.value, SourceUnavailableError)
    assert MARKER not in all_that_is_said(caught.value) + caplog.text


def test_the_world_of_a_test_is_its_own(world: World) -> None:
    assert memory_server(world.name) is world.server
