"""Local files and folders as a source of documents."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from haiku.rag.client.files import FileSource, local_path
from haiku.rag.errors import UnsupportedSourceError
from haiku.rag.testing import plugin as memory_plugin
from haiku.rag.testing import testing_config

pytestmark = pytest.mark.anyio
Found = Callable[[Path | str], Any]


@pytest.fixture
def source() -> FileSource:
    return FileSource(testing_config({"processing": {"max_file_bytes": 100}}, memory_plugin))


async def names(source: FileSource, location: Path | str) -> list[str]:
    return [Path(local_path(uri)).name async for uri in source.discover(str(location))]


async def test_a_folder_gives_the_files_that_a_converter_reads_in_path_order(
    source: FileSource, tmp_path: Path
) -> None:
    for name in ("b.md", "a.txt", "C.MD", "picture.png", ".notes.md", "sub/z.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert await names(source, tmp_path) == [".notes.md", "C.MD", "a.txt", "b.md", "z.md"]


@pytest.mark.parametrize("folder", [".git", "node_modules", "__pycache__", "venv"])
async def test_folders_of_other_peoples_code_are_left_out(source: FileSource, tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "a.md").write_text("x")
    assert await names(source, tmp_path) == []


async def test_links_are_not_followed(source: FileSource, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("x")
    root = tmp_path / "root"
    root.mkdir()
    (root / "loop").symlink_to(root)
    (root / "out.md").symlink_to(tmp_path / "outside.md")
    (root / "dangling.md").symlink_to(root / "nothing")
    (root / "in.md").write_text("x")
    assert await names(source, root) == ["in.md"]


async def test_a_file_gives_itself_also_when_no_converter_reads_it(source: FileSource, tmp_path: Path) -> None:
    (tmp_path / "a b%#ü.bin").write_text("x")
    assert await names(source, tmp_path / "a b%#ü.bin") == ["a b%#ü.bin"]


async def test_a_path_that_is_not_there_is_an_error(source: FileSource, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedSourceError, match="there is no file or folder '.*none'"):
        await names(source, tmp_path / "none")


async def test_bytes_come_with_uri_and_name(source: FileSource, tmp_path: Path) -> None:
    path = tmp_path / "テスト [b] c%20.md"
    path.write_bytes(b"text")
    content = await source.fetch(path.as_uri())
    assert (content.data, content.name, content.uri) == (b"text", path.name, path.as_uri())


async def test_a_name_that_is_no_text_can_be_read(source: FileSource, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md"))
    path.write_bytes(b"text")
    (uri,) = [uri async for uri in source.discover(str(tmp_path))]
    assert (await source.fetch(uri)).data == b"text"


async def test_a_file_that_is_too_large_is_refused(source: FileSource, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"x" * 101)
    with pytest.raises(UnsupportedSourceError, match="larger than processing.max_file_bytes"):
        await source.fetch(str(tmp_path / "a.md"))


async def test_what_is_no_regular_file_is_refused_and_not_waited_for(source: FileSource, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    for path in (tmp_path / "pipe.md", tmp_path):
        with pytest.raises(UnsupportedSourceError, match="is not a regular file"):
            await source.fetch(str(path))


async def test_a_dangling_link_that_is_named_says_why(source: FileSource, tmp_path: Path) -> None:
    (tmp_path / "a.md").symlink_to(tmp_path / "nothing")
    (uri,) = [uri async for uri in source.discover(str(tmp_path / "a.md"))]
    with pytest.raises(UnsupportedSourceError, match="cannot be read: No such file"):
        await source.fetch(uri)


async def test_a_folder_that_cannot_be_read_says_why(
    source: FileSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text("x")
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if Path(path) in refused:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    refused = [tmp_path / "sub"]
    assert await names(source, tmp_path) == ["a.md", "sub"]
    with pytest.raises(UnsupportedSourceError, match="sub' cannot be read: Permission denied"):
        await source.fetch(str(tmp_path / "sub"))
    refused = [tmp_path]
    with pytest.raises(UnsupportedSourceError, match="the folder '.*' cannot be read: Permission denied"):
        await names(source, tmp_path)


@pytest.mark.parametrize("location", ["", "  ", "a\0b"])
def test_a_path_that_is_blank_or_holds_nul_is_refused(location: str) -> None:
    with pytest.raises(UnsupportedSourceError, match="blank or holds a NUL"):
        local_path(location)


def test_the_home_directory_expands_and_an_unknown_one_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_path("~/a") == tmp_path / "a"
    assert local_path("~no-such-user-here/a").name == "a"
