# ruff: noqa: D102 - a test's name is its documentation
"""Clauses 47 to 51, 61 and 62 of the storage contract: what an engine's record names, upkeep, checks, migrations."""

from __future__ import annotations

from dataclasses import replace
from typing import cast, get_args

import pytest

from haiku.rag.contracts.maintenance import (
    Capability,
    CheckedDatabase,
    HistoricDatabase,
    MigratingStorage,
    RebuiltDatabase,
    TaggedDatabase,
    UpkeepDatabase,
)
from haiku.rag.contracts.storage import OpenMode, Storage
from haiku.rag.errors import MigrationRequiredError, MissingDatabaseError, ReadOnlyError
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.testing.storage_fixtures import (
    DIMENSION,
    MakeOutdated,
    MakeRef,
    OpenDatabase,
    StorageFixtures,
    document,
    found_in_every_way,
    vector_query,
    vectors_of,
)
from haiku.rag.testing.storage_versions import documents_of, held, version

PROTOCOLS: dict[Capability, type] = {
    "upkeep": UpkeepDatabase,
    "checks": CheckedDatabase,
    "history": HistoricDatabase,
    "tags": TaggedDatabase,
    "rebuild": RebuiltDatabase,
    "migrations": MigratingStorage,
}
ENOUGH = 300
"""So many chunks are enough for an index of any kind."""


class MaintenanceClauses(StorageFixtures):
    """Clauses 47 to 51, 61 and 62."""

    async def test_47_what_the_record_names_is_there(self, storage: Storage, open_database: OpenDatabase) -> None:
        database = await open_database()
        assert self.capabilities <= {*get_args(Capability)}
        for capability, protocol in PROTOCOLS.items():
            for name in (name for name in vars(protocol) if not name.startswith("_")):
                owner = storage if capability == "migrations" else database
                assert capability not in self.capabilities or callable(getattr(owner, name))

    async def test_48_upkeep_changes_nothing_that_is_read(self, open_database: OpenDatabase) -> None:
        self.needs("upkeep")
        database = cast("UpkeepDatabase", await open_database())
        for number in range(3):
            _, gone = await database.write([version(number), document("gone", uri="mem:gone")])
        await database.delete(gone.id)
        before = await documents_of(database), await found_in_every_way(database, "passage")
        planned = await database.vacuum(retention_seconds=0, dry_run=True)
        assert planned.dry_run
        assert {step.status for step in planned.steps} <= {"planned", "nothing to do"}
        done = await database.vacuum(retention_seconds=0, dry_run=False)
        assert done.finished_at.utcoffset() is not None
        assert {step.status for step in done.steps} <= {"done", "nothing to do"}
        assert done.steps
        assert not done.dry_run
        assert (await documents_of(database), await found_in_every_way(database, "passage")) == before
        assert await held(database) == 2
        assert not (await database.vacuum(retention_seconds=None, dry_run=False)).failed

    async def test_49_indexes_that_are_built_again_find_the_same(self, open_database: OpenDatabase) -> None:
        self.needs("upkeep")
        database = cast("UpkeepDatabase", await open_database())
        assert await database.create_index() == (await database.info()).indexes
        texts = [f"word number {index}" for index in range(ENOUGH)]
        await database.write([document(*texts, vectors=vectors_of(ENOUGH))])
        queries = [vector_query(vector, depth=3) for vector in vectors_of(5, seed=11)]
        before = [(await database.search(query))["chunk_id"].to_pylist() for query in queries]
        found = await found_in_every_way(database, "17")
        assert await database.create_index() == (await database.info()).indexes
        assert [(await database.search(query))["chunk_id"].to_pylist() for query in queries] == before
        assert await found_in_every_way(database, "17") >= {*before[0]} & found

    async def test_50_a_database_for_reading_refuses_what_changes_it(self, open_database: OpenDatabase) -> None:
        self.needs("upkeep")
        await (await open_database()).close()
        reader = cast("UpkeepDatabase", await open_database(mode=OpenMode.READ))
        with pytest.raises(ReadOnlyError):
            await reader.vacuum(retention_seconds=0, dry_run=False)
        with pytest.raises(ReadOnlyError):
            await reader.create_index()

    async def test_51_checks_find_a_sound_database_sound(self, open_database: OpenDatabase) -> None:
        self.needs("checks")
        database = cast("CheckedDatabase", await open_database())
        for number in range(3):
            await database.write([version(number), document("a", "b")])
        before = await documents_of(database)
        for fix in (False, True):
            findings = await database.check(fix=fix)
            assert [finding for finding in findings if finding.status == "failed"] == []
            assert all(finding.check and finding.message for finding in findings)
            assert fix or not any(finding.fixed for finding in findings)
        assert await documents_of(database) == before
        assert await held(database) == 2

    async def test_61_a_current_database_needs_no_migration(
        self, storage: Storage, open_database: OpenDatabase, make_ref: MakeRef
    ) -> None:
        self.needs("migrations")
        migrating = cast("MigratingStorage", storage)
        database = await open_database()
        await database.write([version(1)])
        assert list(await migrating.pending_migrations(make_ref("one"))) == []
        assert list(await migrating.migrate(make_ref("one"))) == []
        assert await held(database) == 1
        nowhere = make_ref("nowhere")
        for operation in (migrating.pending_migrations, migrating.migrate):
            with pytest.raises(MissingDatabaseError):
                await operation(nowhere)
        assert nowhere.path is None or not nowhere.path.exists()

    async def test_62_an_older_database_is_refused_until_it_is_migrated(
        self, storage: Storage, identity: EmbeddingIdentity, make_outdated: MakeOutdated | None
    ) -> None:
        self.needs("migrations")
        if make_outdated is None:
            pytest.skip("the engine has had one schema only")
        migrating, ref = cast("MigratingStorage", storage), await make_outdated("outdated")
        pending = list(await migrating.pending_migrations(ref))
        assert sorted(step.version for step in pending) == [step.version for step in pending]
        assert all(step.summary for step in pending)
        for mode in OpenMode:
            with pytest.raises(MigrationRequiredError):
                await storage.open(ref, mode=mode, identity=identity)
        assert list(await migrating.pending_migrations(ref)) == pending != []
        assert list(await migrating.migrate(ref)) == pending
        assert list(await migrating.pending_migrations(ref)) == []
        database = await storage.open(replace(ref, tag=None), mode=OpenMode.READ, identity=identity)
        assert await documents_of(database)
        assert (await database.search(vector_query([1.0] * DIMENSION))).num_rows
        await database.close()
        await storage.close()
