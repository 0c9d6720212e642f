"""`examine`: whatever is wrong with a database is a finding, and never an exception."""

from collections.abc import Iterator, Sequence
from typing import Any

import anyio
import pytest

from haiku.rag.client import DatabaseScope, DoctorReport, HaikuRAG, doctor, examine
from haiku.rag.config import AppConfig
from haiku.rag.contracts import Finding
from haiku.rag.errors import AmbiguousDatabaseError, ReadOnlyError, StorageError, TagError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.plugins import EmbedderRecord, HealthCheckRecord, StorageRecord, hookimpl
from haiku.rag.plugins.kernel import Kernel
from haiku.rag.plugins.loading import Plugin
from haiku.rag.testing import memory_server, plugin_without_storage, testing_config, testing_plugin
from haiku.rag.testing import plugin as memory_plugin

pytestmark = pytest.mark.anyio

LOCATION = "memory://secret-host/a"
HASH = {"provider": "hash", "name": "words", "vector_dim": 64}


class Place:
    """A database of a test's own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.server = memory_server(name)

    def config(self, *plugins: object, memory: object = memory_plugin, **sections: Any) -> AppConfig:
        data = {"memory": {"server": self.name, "databases": {"a": LOCATION}}, "embeddings": {"model": HASH}}
        return testing_config({**data, **sections}, memory, *plugins)

    async def filled(self) -> None:
        async with HaikuRAG(config=self.config(), create=True) as client:
            await client.create_document("A text about search.")

    async def report(self, *plugins: object, fix: bool = False, **sections: Any) -> DoctorReport:
        config = self.config(*plugins, **sections)
        return await examine(DatabaseScope.resolve(config), config, fix=fix)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Place:
    return Place(request.node.nodeid)


def statuses(report: DoctorReport) -> dict[str, str]:
    return {finding.check: finding.status for finding in report.findings}


async def test_a_sound_database_has_nothing_wrong(place: Place) -> None:
    await place.filled()
    report = await place.report()
    assert statuses(report) == {"plugins": "ok", "database": "ok", "embedding": "ok", "vectors": "ok"}
    assert (report.source, report.failed, report.warnings) == ("a", [], [])


async def test_a_missing_database_is_a_finding_with_the_command_that_makes_it(place: Place) -> None:
    report = await place.report()
    (finding,) = report.failed
    assert finding.check == "database"
    assert finding.remedy == "haiku-rag --db-name 'a' init"
    assert "secret-host" not in finding.message


async def test_an_unreachable_database_is_a_finding_that_does_not_say_where_it_is(place: Place) -> None:
    await place.filled()
    place.server.fail(LOCATION, OSError(f"cannot connect to {LOCATION}"))
    (finding,) = (await place.report()).failed
    assert finding.check == "database"
    assert "secret-host" not in finding.message


async def test_a_database_that_does_not_answer_in_time_is_a_finding(place: Place) -> None:
    await place.filled()
    place.server.slow(LOCATION, 60.0)
    (finding,) = (await place.report(search={"timeout_s": 0.01})).failed
    assert "did not answer in time" in finding.message


async def test_a_database_of_an_older_schema_is_a_finding_with_the_steps_to_take(place: Place) -> None:
    await place.filled()
    place.server.age(LOCATION)
    (finding,) = (await place.report()).failed
    assert finding.remedy == "haiku-rag migrate"
    assert "Version 1: " in finding.message


async def test_another_embedding_of_the_same_dimension_is_a_warning_and_of_another_one_a_failure(place: Place) -> None:
    await place.filled()
    for changes, status in (({"name": "other"}, "warning"), ({"vector_dim": 32}, "failed")):
        report = await place.report(embeddings={"model": {**HASH, **changes}})
        (finding,) = [finding for finding in report.findings if finding.check == "embedding"]
        assert finding.status == status
        assert finding.remedy == "haiku-rag rebuild --embed-only"
        assert statuses(report)["vectors"] == "ok"


async def test_an_embedder_that_is_not_there_or_not_usable_is_a_finding(place: Place) -> None:
    await place.filled()
    report = await place.report(embeddings={"model": {"provider": "nothing"}})
    assert statuses(report)["embedder"] == "warning"

    class Broken:
        @hookimpl
        def haiku_rag_register_embedder(self) -> Iterator[EmbedderRecord]:
            for name in ("dull", "odd"):
                yield EmbedderRecord(name=name, summary="s", factory=f"test_core_doctor_embedders:{name}")

    import sys
    from types import SimpleNamespace

    class Dull:
        def __init__(self, config: AppConfig) -> None:
            """Take any."""

        @property
        def identity(self) -> EmbeddingIdentity:
            raise OSError("/secret/folder is not there")

        async def close(self) -> None:
            """Hold nothing."""

    class Odd(Dull):
        @property
        def identity(self) -> EmbeddingIdentity:
            raise StorageError("the model is not there.")

    sys.modules["test_core_doctor_embedders"] = SimpleNamespace(dull=Dull, odd=Odd)  # type: ignore[assignment]
    for name, words in (("dull", "OSError"), ("odd", "the model is not there.")):
        report = await place.report(Broken(), embeddings={"model": {"provider": name}})
        (finding,) = report.failed
        assert finding.message == f"The embedder cannot be used: {words}"


async def test_an_engine_without_checks_is_a_warning(place: Place) -> None:
    class Plain:
        haiku_rag_register_config_section = staticmethod(memory_plugin.haiku_rag_register_config_section)

        @hookimpl
        def haiku_rag_register_storage(self) -> Iterator[StorageRecord]:
            factory = "haiku.rag.testing.memory:MemoryStorage"
            yield StorageRecord(name="memory", summary="s", factory=factory, sections=("memory",), standalone=True)

    await place.filled()
    plugins = (testing_plugin(plugin_without_storage, name="rest"),)
    report = await place.report(*plugins, memory=Plain())
    (finding,) = report.warnings
    assert finding.check == "checks"
    assert "'memory'" in finding.message
    place.server.age(LOCATION)
    (finding,) = (await place.report(*plugins, memory=Plain())).failed
    assert "Version" not in finding.message


async def test_checks_that_raise_are_a_finding(place: Place) -> None:
    await place.filled()
    place.server.fail(LOCATION, StorageError("the disk is broken"), "check")
    (finding,) = (await place.report()).failed
    assert (finding.check, "a" in finding.message) == ("checks", True)


async def test_only_fixing_opens_for_writing(place: Place) -> None:
    await place.filled()
    assert (await place.report(fix=True)).failed == []
    async with HaikuRAG(config=place.config(), read_only=True) as client:
        assert (await client.doctor()).failed == []
        with pytest.raises(ReadOnlyError, match="reading only"):
            await client.doctor(fix=True)
    async with HaikuRAG(config=place.config()) as client:
        assert (await client.doctor(fix=True)).source == "a"


async def test_one_live_database_is_examined(place: Place) -> None:
    memory: dict[str, Any] = {"server": place.name, "databases": {"a": LOCATION, "b": LOCATION}}
    config = place.config(memory=memory_plugin)
    two = testing_config({"memory": memory}, memory_plugin)
    with pytest.raises(AmbiguousDatabaseError):
        await examine(DatabaseScope.resolve(two), two)
    with pytest.raises(TagError):
        await examine(DatabaseScope.resolve(config).at_tag("then"), config)


async def test_plugins_that_were_not_loaded_are_a_warning(place: Place) -> None:
    await place.filled()
    config = place.config()
    broken = Plugin(
        name="acme", distribution="acme", version="1", module="acme", status="failed", reason="it is broken"
    )
    kernel = Kernel([*config.kernel.plugins, broken])
    config = AppConfig.model_validate(config.model_dump(), context={"kernel": kernel})
    report = await examine(DatabaseScope.resolve(config, database_path="x.memory"), config)
    assert "plugin 'acme' (acme 1) was not loaded: it is broken." in report.warnings[0].message


class Checks:
    """A plugin with checks, good and bad."""

    def __init__(self, *names: str) -> None:
        self.names = names

    @hookimpl
    def haiku_rag_register_health_check(self) -> Iterator[HealthCheckRecord]:
        for name in self.names:
            yield HealthCheckRecord(name=name, summary="s", factory=f"test_core_doctor_checks:{name}")


async def well(config: AppConfig) -> Sequence[Finding]:
    assert config.search.limit == 5
    return [Finding(check="acme service", status="ok", message="It answers.")]


async def absent(config: AppConfig) -> Sequence[Finding]:
    return ()


async def raising(config: AppConfig) -> Sequence[Finding]:
    raise RuntimeError("the key is sk-secret")


async def leaving(config: AppConfig) -> Sequence[Finding]:
    raise SystemExit(3)


async def endless(config: AppConfig) -> Sequence[Finding]:
    await anyio.sleep_forever()
    return ()


async def wrong(config: AppConfig) -> Sequence[Any]:
    return ["a text"]


def plain(config: AppConfig) -> Sequence[Finding]:
    return ()


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the factories of `Checks` be found."""
    import sys

    monkeypatch.setitem(sys.modules, "test_core_doctor_checks", sys.modules[__name__])
    monkeypatch.setattr(doctor, "HEALTH_SECONDS", 0.05)


async def test_the_checks_of_plugins_are_made_and_one_that_fails_disturbs_no_other(place: Place, checks: None) -> None:
    await place.filled()
    names = ("absent", "endless", "leaving", "nothing", "plain", "raising", "well", "wrong")
    report = await place.report(Checks(*names))
    assert "acme service" in statuses(report)
    failed = {finding.check: finding.message for finding in report.failed}
    assert set(failed) == {"endless", "leaving", "nothing", "plain", "raising", "wrong"}
    assert failed["endless"] == "The check 'endless' did not end in time."
    assert failed["leaving"] == "The check 'leaving' failed: SystemExit."
    assert failed["raising"] == "The check 'raising' failed: RuntimeError."
    assert "could not be loaded" in failed["nothing"]
