"""Odd queries, paths, folders and files, with the packages that are installed by default.

Each gets a clear error or a right answer, nothing else is lost, and what only reads changes no file.
"""

import hashlib
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from haiku.rag.client import DatabaseScope, DocumentImport, HaikuRAG, IngestResults, migrate, pending_migrations
from haiku.rag.config import AppConfig
from haiku.rag.errors import FilterError, HaikuRagError, ReadOnlyError, SourceUnavailableError, TagError
from haiku.rag.models import Chunk, Document

pytestmark = pytest.mark.anyio
TEXT = "# Harbour\n\nPilots wait in the harbour at dawn.\n\n# Quarry\n\nGranite is cut in the quarry by night.\n"


def configuration(tmp_path: Path, *names: str) -> AppConfig:
    return AppConfig.model_validate({"lancedb": {"databases": {name: str(tmp_path / name) for name in names}}})


def nothing_configured(tmp_path: Path) -> AppConfig:
    return AppConfig.model_validate({"storage": {"data_dir": str(tmp_path / "data")}})


def tree(folder: Path) -> str:
    """A hash of every path below a folder, with what is there."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        digest.update(f"{path.relative_to(folder)} {stat.S_IFMT(status.st_mode)}".encode(errors="surrogateescape"))
        if stat.S_ISREG(status.st_mode):
            digest.update(f"{status.st_mtime_ns} ".encode() + path.read_bytes())
    return digest.hexdigest()


@pytest.fixture
async def filled(tmp_path: Path) -> AppConfig:
    """Databases `a` and `b`, both with the same text."""
    config = configuration(tmp_path, "a", "b")
    for name in ("a", "b"):
        async with HaikuRAG(config=config, sources=[name], create=True) as client:
            await client.create_document(TEXT, uri="u", title="Places")
    return config


QUERIES = {
    "unbalanced double quote": '"harbour pilots',
    "unbalanced single quote": "harbour o'clock pilots'",
    "unbalanced parenthesis": "(harbour pilots",
    "operators": "harbour AND OR NOT pilots",
    "a field": "text:harbour +pilots -dawn",
    "wildcards": "harb* pil?ts harbour~2 pilots^3",
    "brackets": "harbour [pilots TO {dawn}",
    "backslashes": "harbour\\ pilots\\",
    "NUL": "har\0bour pilots",
    "a lone surrogate": "harbour \ud800 pilots",
    "5,000 characters": ("harbour pilots " * 400)[:5000],
    "control characters": "harbour\x01\x07\n\r\tpilots",
    "markup": "<b>harbour</b> [/red] pilots",
}


@pytest.mark.parametrize("search_type", ["hybrid", "vector", "fts"])
async def test_an_odd_query_finds_what_its_words_mean(filled: AppConfig, search_type: Any) -> None:
    async with HaikuRAG(config=filled, read_only=True) as client:
        for kind, query in QUERIES.items():
            found = await client.search(query, limit=4, search_type=search_type)
            assert {hit.source for hit in found} == {"a", "b"}, kind
            assert all("Pilots wait" in hit.content for hit in found[:2]), kind


async def test_a_query_without_a_word_to_look_for_is_no_error(filled: AppConfig) -> None:
    async with HaikuRAG(config=filled, read_only=True) as client:
        for query in ("!!!", "...", '"', "()", "_", "*", "🦀", "the of and"):
            assert isinstance(await client.search(query, search_type="fts"), list)
            assert len(await client.search(query, limit=2)) == 2


async def test_a_query_of_nothing_is_refused_with_a_sentence(filled: AppConfig) -> None:
    async with HaikuRAG(config=filled, read_only=True) as client:
        for query in ("", " ", " \t\n\u3000", "\0", " \0 "):
            with pytest.raises(ValueError, match="^the query is empty: say what to look for$"):
                await client.search(query)


FILTERS = [
    "",
    "title",
    "title = ",
    "title = 'x",
    "size > 3",
    "title = 'x'; drop",
    "1 = 1",
    "title = 'x' -- '",
    "t = \0",
]


async def test_a_filter_that_cannot_be_understood_is_refused(filled: AppConfig) -> None:
    async with HaikuRAG(config=filled, read_only=True) as client:
        for text in FILTERS:
            for sources in (["a"], ["a", "b"]):
                for use in (
                    client.search("harbour", filter=text, sources=sources),
                    client.list_documents(filter=text, sources=sources),
                ):
                    with pytest.raises(FilterError):
                        await use


NAMES = ["dbx", "db", "with spaces", "100%", "a%20b", "a#b", "a?b=c", "ü-テスト", "a'b", "x.lancedb", "[a] {b}", "-x"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_path_may_be_called_anything(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for config, given in ((nothing_configured(tmp_path), path), (configuration(tmp_path, name), None)):
        async with HaikuRAG(given, config=config, create=given is not None) as client:
            if given is not None:
                await client.create_document(TEXT, uri="u")
            assert path.is_dir()
            (hit, *_) = await client.search("harbour pilots", limit=1)
            assert hit.source == (name if given is None else path.stem)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [name]


async def test_a_relative_path_that_begins_with_db_is_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with HaikuRAG("db-notes", config=nothing_configured(tmp_path), create=True) as client:
        await client.create_document(TEXT)
    assert (tmp_path / "db-notes").is_dir()


READS = ("search", "list", "count", "get", "info")


async def read(client: HaikuRAG, what: str) -> None:
    async with client:
        if what == "search":
            await client.search("harbour pilots")
        elif what == "list":
            await client.list_documents()
        elif what == "count":
            await client.count_documents()
        elif what == "get":
            await client.resolve_document("u")
        else:
            await client.info()


@pytest.mark.parametrize("what", READS)
@pytest.mark.parametrize("read_only", [True, False])
async def test_a_database_that_is_missing_is_said_to_be_and_not_made(
    tmp_path: Path, what: str, *, read_only: bool
) -> None:
    for config, given in ((nothing_configured(tmp_path), tmp_path / "x"), (configuration(tmp_path, "x"), None)):
        with pytest.raises(SourceUnavailableError, match=r"database 'x' .*does not exist\. Create it with: haiku-rag"):
            await read(HaikuRAG(given, config=config, read_only=read_only), what)
    with pytest.raises(SourceUnavailableError, match=r"database 'haiku\.rag' does not exist"):
        await read(HaikuRAG(config=nothing_configured(tmp_path), read_only=read_only), what)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("create", [True, False])
async def test_a_database_path_that_is_a_file_is_said_to_be_one_and_kept(tmp_path: Path, *, create: bool) -> None:
    path = tmp_path / "x.lancedb"
    path.write_text("no database")
    with pytest.raises(HaikuRagError, match="is a file, not a folder"):
        await HaikuRAG(path, config=nothing_configured(tmp_path), create=create).__aenter__()
    with pytest.raises(HaikuRagError, match="'x.lancedb'") as caught:
        await HaikuRAG(config=configuration(tmp_path, "x.lancedb"), create=create).__aenter__()
    assert str(tmp_path) not in str(caught.value)
    assert path.read_text() == "no database"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.lancedb"]


async def test_a_folder_that_is_no_database_is_said_to_be_missing_one_and_kept(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "letter.txt").write_text("dear")
    before = tree(tmp_path)
    for given, config in ((tmp_path / "x", nothing_configured(tmp_path)), (None, configuration(tmp_path, "x"))):
        with pytest.raises(HaikuRagError, match="'x'"):
            await read(HaikuRAG(given, config=config), "search")
    assert tree(tmp_path) == before


@pytest.mark.parametrize("read_only", [True, False])
async def test_reading_creates_and_changes_nothing(filled: AppConfig, tmp_path: Path, *, read_only: bool) -> None:
    before = tree(tmp_path)
    for what in READS:
        await read(HaikuRAG(config=filled, sources=["a"], read_only=read_only), what)
        if what != "info":
            await read(HaikuRAG(config=filled, read_only=read_only), what)
        assert tree(tmp_path) == before, what


@pytest.fixture
async def locked(filled: AppConfig, tmp_path: Path) -> AsyncIterator[AppConfig]:
    """The databases in folders that must not be written."""
    folders = [path for path in [tmp_path, *tmp_path.rglob("*")] if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    if os.access(tmp_path, os.W_OK):
        for folder in folders:
            folder.chmod(0o755)
        pytest.skip("this user may write where the mode forbids it")
    yield filled
    for folder in folders:
        folder.chmod(0o755)


async def test_a_database_in_a_read_only_folder_is_read(locked: AppConfig) -> None:
    for what in READS:
        for read_only in (True, False):
            await read(HaikuRAG(config=locked, sources=["a"], read_only=read_only), what)


async def test_a_write_in_a_read_only_folder_is_an_error_of_ours(locked: AppConfig) -> None:
    async with HaikuRAG(config=locked, sources=["a"]) as client:
        with pytest.raises(HaikuRagError, match="'a'"):
            await client.create_document("text")


async def test_a_client_for_reading_refuses_to_write(filled: AppConfig, tmp_path: Path) -> None:
    before = tree(tmp_path)
    async with HaikuRAG(config=filled, sources=["a"], read_only=True) as client:
        for use in (
            client.create_document("text"),
            client.delete_document("x"),
            client.update_document("x", title="t"),
        ):
            with pytest.raises(ReadOnlyError, match="'a'"):
                await use
    assert tree(tmp_path) == before


async def test_a_folder_cannot_be_made_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(HaikuRagError, match="'x'"):
        await HaikuRAG(tmp_path / "file" / "x", config=nothing_configured(tmp_path), create=True).__aenter__()


FILES = {
    "utf-8.md": ("The lighthouse at the cape burns paraffin.", "utf-8", "lighthouse paraffin"),
    "utf-8-bom.txt": ("The windmill on the hill grinds barley.", "utf-8-sig", "windmill barley"),
    "gbk.txt": (
        "港口的引水员在黎明时分等待船只进港。花岗岩采石场在夜间作业,工人们切割石头并把它们装上驳船。" * 3,
        "gbk",
        "引水员",
    ),
    "shift-jis.txt": (
        "水先案内人は夜明けに港で待っている。採石場では夜に花崗岩が切り出され、はしけに積まれる。" * 3,
        "shift_jis",
        "水先案内人",
    ),
    "utf-16.txt": ("The glass works at the river melt sand.", "utf-16", "glass works"),
    "latin-1.txt": ("Die Kräne im Hafen werden täglich geölt und überprüft.", "latin-1", "Kräne"),
    "a[b] c%20#d.md": ("The brickworks fire clay in kilns.", "utf-8", "brickworks clay"),
    "テスト.md": ("The tannery soaks hides in oak bark.", "utf-8", "tannery hides"),
    ".notes.md": ("The ropewalk twists hemp.", "utf-8", "ropewalk hemp"),
    "bm25.txt": ("BM25 is the name of the bakery in the lane.", "utf-8", "bakery"),
    "url.txt": ("https://example.org/x is written over the brewery gate.", "utf-8", "brewery"),
}


@pytest.fixture
def awkward(tmp_path: Path) -> Path:
    """A folder of good files in every encoding, and of everything that is awkward in a folder."""
    root = tmp_path / "awkward"
    (root / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("The mint strikes coins.")
    for name, (text, encoding, _) in FILES.items():
        (root / name).write_bytes(text.encode(encoding))
    (root / "deep" / "deeper" / "last.md").write_text("The foundry pours bronze bells.")
    (root / "empty.md").write_bytes(b"")
    (root / "blank.txt").write_text(" \n\n\t")
    (root / "zeros.txt").write_bytes(b"\0" * 64)
    (root / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    (root / "surrogate.json").write_bytes(b'{"shipyard": "caulks hulls \xed\xa0\x80 with oakum"}')
    (root / "deep" / "loop").symlink_to(root)
    (root / "deep" / "self.md").symlink_to(root / "deep" / "self.md")
    (root / "out.md").symlink_to(tmp_path / "outside" / "secret.md")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "dangling.md").symlink_to(root / "nothing.md")
    os.mkfifo(root / "pipe.md")
    Path(os.fsdecode(os.fsencode(root) + b"/latin-\xe9.md")).write_text("The sawmill planes larch.")
    return root


async def test_an_awkward_folder_gives_a_result_for_each_file_and_the_good_ones_are_found(
    awkward: Path, tmp_path: Path
) -> None:
    before = tree(awkward)
    async with HaikuRAG(tmp_path / "db", config=nothing_configured(tmp_path), create=True) as client:
        with anyio.fail_after(60):
            results = await client.create_document_from_source(awkward)
        assert isinstance(results, IngestResults)
        reasons = {Path(failure.uri).name: failure.reason for failure in results.failures}
        assert {"empty.md", "blank.txt", "zeros.txt", "broken.pdf", "pipe.md"} <= set(reasons)
        assert all(len(reason) > 10 for reason in reasons.values())
        for name, (_, _, question) in FILES.items():
            (hit, *_) = await client.search(question, limit=1)
            assert hit.document_uri == (awkward / name).as_uri()
            assert "\ufffd" not in hit.content
        for question, name in (("foundry bronze bells", "last.md"), ("sawmill larch", "latin-%E9.md")):
            assert str((await client.search(question, limit=1))[0].document_uri).endswith(name)
        assert "oakum" in (await client.search("shipyard caulks hulls oakum", limit=1))[0].content
        uris = [document.uri for document in await client.list_documents()]
        assert len(uris) == len(set(uris)) == len(results)
        assert not any("secret" in str(uri) or "/loop/" in str(uri) or "out.md" in str(uri) for uri in uris)
    assert tree(awkward) == before


async def test_a_file_that_may_not_be_read_is_a_failure_of_its_own(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "closed.md").write_text("secret")
    (root / "open.md").write_text("Pilots wait.")
    (root / "closed.md").chmod(0)
    if os.access(root / "closed.md", os.R_OK):
        pytest.skip("this user may read what the mode forbids; the pipe of the awkward folder stands for it")
    async with HaikuRAG(tmp_path / "db", config=nothing_configured(tmp_path), create=True) as client:
        results = await client.create_document_from_source(root)
        assert isinstance(results, IngestResults)
        assert len(results) == 1
        assert "Permission denied" in results.failures[0].reason


ODD_TEXTS = {
    "a lone surrogate": "Pilots \ud800 wait",
    "NUL": "Pilots\0 wait",
    "a table cell of 20,000 characters": "| a | b |\n|---|---|\n| " + "pilots wait " * 1700 + " | x |\n",
    "one word of 20,000 letters": "pilots wait " + "x" * 20_000,
    "right to left and combining marks": "pilots wait \u202e שלום \u0301\u0301\u0301",
    "markup": "pilots wait [/red] [b + 3 <script>alert(1)</script>",
    "many headings": "\n\n".join(f"{'#' * (1 + number % 6)} Heading {number}" for number in range(50))
    + "\n\npilots wait",
}


@pytest.mark.parametrize("format", ["md", "plain", "html"])
async def test_an_odd_text_is_stored_and_found(tmp_path: Path, format: Any) -> None:
    async with HaikuRAG(tmp_path / "db", config=nothing_configured(tmp_path), create=True) as client:
        for kind, text in ODD_TEXTS.items():
            await client.create_document(text, uri=kind, format=format)
            found = await client.search("pilots wait", limit=3, filter=f"uri = '{kind}'")
            assert any("ilots" in hit.content for hit in found), kind
            document = await client.get_document_by_uri(kind)
            assert document is not None
            assert not {"\0", "\ud800"} & set(str(document.content)), kind
        assert await client.count_documents() == len(ODD_TEXTS)


ODD = "t\ud800\0 'x'; drop \\ 50%_off"


async def test_odd_titles_uris_and_metadata_are_stored_or_refused_and_nothing_else_is_lost(tmp_path: Path) -> None:
    async with HaikuRAG(tmp_path / "db", config=nothing_configured(tmp_path), create=True) as client:
        await client.create_document("Pilots wait.", uri="good")
        made = await client.create_document("Pilots sail.", uri=ODD, title=ODD, metadata={"k": ODD, "é": [1, None]})
        again = await client.create_document("Pilots sail.", uri=ODD, title=ODD)
        assert again.id == made.id
        changed = await client.update_document(made.id, title=ODD, metadata={"k": ODD})
        assert changed.id == made.id
        for lookup in (
            client.get_document_by_uri(ODD),
            client.resolve_document(ODD),
            client.get_document_by_id(made.id),
        ):
            document = await lookup
            assert document is not None
            assert document.id == made.id
        assert await client.get_document_by_id(ODD) is None
        assert await client.get_chunk_by_id(ODD) is None
        assert await client.get_picture_bytes(ODD, ODD) is None
        assert await client.delete_document(ODD) is False
        assert await client.count_documents() == 2


async def test_one_batch_may_name_a_uri_twice_and_the_last_is_kept_whole(tmp_path: Path) -> None:
    documents = [DocumentImport(content=text, uri="u") for text in ("Pilots wait.", "Granite is cut.")]
    async with HaikuRAG(tmp_path / "db", config=nothing_configured(tmp_path), create=True) as client:
        await client.import_documents([*documents, DocumentImport(content="Boats.", chunks=[Chunk(content="Boats.")])])
        assert await client.count_documents() == 2
        assert {hit.content for hit in await client.search("pilots granite boats")} == {"Granite is cut.", "Boats."}


async def test_a_folder_given_as_an_address_is_stored_like_a_folder(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "a.md").write_text("Pilots wait.")
    async with HaikuRAG(tmp_path / "db", config=nothing_configured(tmp_path), create=True) as client:
        results = await client.create_document_from_source((tmp_path / "f").as_uri())
        assert isinstance(results, list)
        assert [Path(str(document.uri)).name for document in results if isinstance(document, Document)] == ["a.md"]


TAG_NAMES = [
    "",
    " ",
    "a b",
    "../up",
    "a/b",
    "..",
    ".",
    "-" * 101,
    "ü",
    "🦀",
    "a\0b",
    "a\nb",
    "\udcff",
    "'; drop",
    "x.lock",
]


async def test_a_name_that_no_tag_can_have_is_refused_and_makes_none(tmp_path: Path) -> None:
    config = configuration(tmp_path, "a")
    async with HaikuRAG(config=config, create=True) as client:
        await client.create_document(TEXT, uri="u")
        for name in TAG_NAMES:
            for use in (client.create_tag(name), client.delete_tag(name), client.restore_tag(name)):
                with pytest.raises(TagError, match="'a'"):
                    await use
        assert await client.tags() == []
    for name in filter(str.strip, TAG_NAMES):
        with pytest.raises(TagError, match="'a'"):
            await HaikuRAG(config=config, tag=name).__aenter__()


async def test_looking_after_a_database_read_only_is_refused_and_looking_is_not(
    filled: AppConfig, tmp_path: Path
) -> None:
    async with HaikuRAG(config=filled, sources=["a"]) as client:
        await client.create_tag("kept")
    before = tree(tmp_path)
    async with HaikuRAG(config=filled, sources=["a"], read_only=True) as client:
        for use in (
            client.vacuum(),
            client.create_index(),
            client.create_tag("t"),
            client.delete_tag("kept"),
            client.restore_tag("kept"),
        ):
            with pytest.raises(ReadOnlyError, match="'a'"):
                await use
        assert [tag.name for tag in await client.tags()] == ["kept"]
        assert "kept" in {name for entry in await client.history() for name in entry.tags}
    assert tree(tmp_path) == before


@pytest.mark.parametrize("seconds", [-0.5, float("nan"), float("inf"), 1e300])
async def test_a_retention_that_is_none_is_refused(filled: AppConfig, seconds: float) -> None:
    async with HaikuRAG(config=filled, sources=["a"]) as client:
        with pytest.raises(ValueError, match="retention_seconds must be a number from 0"):
            await client.vacuum(retention_seconds=seconds)


async def test_migrating_what_is_no_database_is_said_and_makes_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no database")
    (tmp_path / "folder").mkdir()
    before = tree(tmp_path)
    for name in ("file", "folder", "nothing"):
        config = configuration(tmp_path, name)
        for step in (pending_migrations, migrate):
            with pytest.raises(SourceUnavailableError, match=f"'{name}'") as caught:
                await step(DatabaseScope.resolve(config), config)
            assert str(tmp_path) not in str(caught.value)
    assert tree(tmp_path) == before
