"""The conformance suites, run on what core ships: the storage in memory, the test models, and every fusion."""

import inspect
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from haiku.rag import testing
from haiku.rag.client.files import FileSource
from haiku.rag.config import AppConfig
from haiku.rag.contracts import CandidateQuery, Capability, DatabaseRef, FusionContext, OpenMode, SourceContent
from haiku.rag.fusion import CalibratedFusion, CosineFusion, ReciprocalRankFusion, WeightedFusion
from haiku.rag.models import EmbeddingIdentity
from haiku.rag.testing import plugin
from haiku.rag.testing.storage_fixtures import MakeOutdated, MakeRef, document
from haiku.rag.testing.storage_maintenance import MaintenanceClauses
from haiku.rag.testing.storage_search import SearchClauses


class TestMemoryStorage(testing.StorageContract):
    storage_name = "memory"
    searches_many = True
    capabilities = frozenset(get_args(Capability))

    @pytest.fixture
    def server(self) -> testing.MemoryServer:
        return testing.MemoryServer()

    @pytest.fixture
    def storage(self, server: testing.MemoryServer) -> testing.MemoryStorage:
        return testing.MemoryStorage(server=server)

    @pytest.fixture
    def make_ref(self) -> MakeRef:
        return lambda name: DatabaseRef(name=name, location=f"memory://{name}", storage="memory", searches_many=True)

    @pytest.fixture
    def make_outdated(
        self,
        server: testing.MemoryServer,
        storage: testing.MemoryStorage,
        make_ref: MakeRef,
        identity: EmbeddingIdentity,
    ) -> MakeOutdated:
        async def make(name: str) -> DatabaseRef:
            ref = make_ref(name)
            database = await storage.open(ref, mode=OpenMode.CREATE, identity=identity)
            await database.write([document("old words")])
            await database.close()
            server.age(ref.location)
            return ref

        return make


class TestStorageThatOffersLittle(MaintenanceClauses):
    """Clauses about what an engine does not have are skipped."""

    capabilities = frozenset({"migrations"})

    @pytest.fixture
    def storage(self) -> testing.MemoryStorage:
        return testing.MemoryStorage(server=testing.MemoryServer())


class TestStorageWithoutShares(SearchClauses):
    """An engine whose text scores say nothing about what was attainable."""

    @pytest.fixture
    def storage(self, monkeypatch: pytest.MonkeyPatch) -> testing.MemoryStorage:
        search = testing.MemoryDatabase.search

        async def without_shares(database: testing.MemoryDatabase, query: CandidateQuery) -> pa.Table:
            return await search(database, replace(query, with_shares=False))

        monkeypatch.setattr(testing.MemoryDatabase, "search", without_shares)
        return testing.MemoryStorage(server=testing.MemoryServer())


class TestHashEmbedder(testing.EmbedderContract):
    @pytest.fixture
    def embedder(self) -> testing.HashEmbedder:
        return testing.HashEmbedder(name="conformance")


class TestHashEmbedderOfPictures(testing.EmbedderContract):
    @pytest.fixture
    def embedder(self) -> testing.HashEmbedder:
        return testing.HashEmbedder(name="image-conformance", dimension=7)


class TestOverlapReranker(testing.RerankerContract):
    @pytest.fixture
    def reranker(self) -> testing.OverlapReranker:
        return testing.OverlapReranker()


class TestCosineFusion(testing.FusionContract):
    @pytest.fixture
    def fusion(self) -> CosineFusion:
        return CosineFusion()


class TestReciprocalRankFusion(testing.FusionContract):
    @pytest.fixture
    def fusion(self) -> ReciprocalRankFusion:
        return ReciprocalRankFusion()


class TestWeightedFusion(testing.FusionContract):
    @pytest.fixture
    def fusion(self) -> WeightedFusion:
        return WeightedFusion(AppConfig())


class TestCalibratedFusion(testing.FusionContract):
    @pytest.fixture
    def fusion(self) -> CalibratedFusion:
        return CalibratedFusion(AppConfig())


class BestOfPool:
    """How far a row is behind the best of the pool, whichever that is."""

    cosine = CosineFusion()

    def scale(self, context: FusionContext) -> None:
        return None

    def fuse(self, pool: pa.Table, context: FusionContext) -> NDArray[np.float64]:
        scores = self.cosine.fuse(pool, context)
        return np.asarray(scores - scores.max(initial=0.0, where=~np.isnan(scores)))


class TestFusionThatLooksAtOtherRows(testing.FusionContract):
    looks_at_other_rows = True

    @pytest.fixture
    def fusion(self) -> BestOfPool:
        return BestOfPool()


class TestTextConverter(testing.ConverterContract):
    @pytest.fixture
    def converter(self) -> testing.TextConverter:
        return testing.TextConverter()

    @pytest.fixture
    def sample(self) -> SourceContent:
        text = "# Bridges\n\nThe stone bridge\nwas rebuilt.\n\n## Floods\n\nOf 1926."
        return SourceContent(uri="file:///a.md", name="a.md", data=text.encode(), media_type="text/markdown")

    @pytest.fixture
    def texts(self) -> list[str]:
        return ["Bridges", "The stone bridge\nwas rebuilt.", "Floods", "Of 1926."]

    @pytest.fixture
    def unreadable(self) -> SourceContent:
        return SourceContent(uri="file:///b.txt", name="b.txt", data=b"\xff\xfe\x00 not UTF-8")


class TestParagraphChunker(testing.ChunkerContract):
    @pytest.fixture
    def chunker(self) -> testing.ParagraphChunker:
        return testing.ParagraphChunker()


class TestFileSource(testing.SourceContract):
    @pytest.fixture
    def source(self) -> FileSource:
        return FileSource(testing.testing_config({}, plugin))

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        for name in ("b.md", "a.txt", "c d.md"):
            (tmp_path / name).write_text(f"text of {name}")
        return str(tmp_path)

    @pytest.fixture
    def missing(self, tmp_path: Path) -> str:
        return str(tmp_path / "nothing" / "here.md")


SUITES = [value for name, value in vars(testing).items() if name.endswith("Contract")]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.__name__)
def test_every_numbered_clause_has_a_test_and_every_test_a_clause(suite: type) -> None:
    prose = inspect.getdoc(sys.modules[suite.__module__]) or ""
    clauses = {int(number) for number in re.findall(r"^(\d+)\. ", prose, re.MULTILINE)}
    tests = {int(match[1]) for name in dir(suite) if (match := re.match(r"test_(\d+)_", name))}
    assert clauses == tests
    assert clauses == set(range(1, len(clauses) + 1))


def test_there_is_a_suite_for_every_kind_with_a_contract() -> None:
    assert {suite.__name__ for suite in SUITES} == {
        "ChunkerContract",
        "ConverterContract",
        "DownloadingContract",
        "EmbedderContract",
        "FusionContract",
        "RerankerContract",
        "SourceContract",
        "StorageContract",
    }


def test_no_suite_is_collected_by_itself() -> None:
    assert not [name for name in testing.__all__ if name.startswith("Test")]
    helpers = (testing.testing_config, testing.testing_kernel, testing.testing_plugin)
    assert {getattr(helper, "__test__", True) for helper in helpers} == {False}
