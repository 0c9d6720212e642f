"""init, add, add-src, list, get, delete and info."""

import json
from pathlib import Path
from typing import Any

import pytest

from haiku.rag.cli.commands.info import info_lines
from haiku.rag.contracts.storage import DatabaseInfo, DatabaseRef
from haiku.rag.testing import MemoryDatabase


@pytest.fixture
def db(shell: Any) -> Any:
    """A shell with one configured, empty database."""
    shell.configure("notes")
    shell.fill("notes")
    return shell


def test_init_creates_a_database_once_and_says_where(shell: Any) -> None:
    shell.configure("notes")
    assert shell("init").stdout == "Created database 'notes' at memory://secret-host/notes.\n"
    again = shell("init")
    assert (again.exit_code, again.stdout) == (0, "Database 'notes' exists already at memory://secret-host/notes.\n")
    assert shell.data("init")["results"] == [
        {"source": "notes", "location": "memory://secret-host/notes", "created": False}
    ]


def test_init_reports_what_keeps_a_database_from_being_created(shell: Any) -> None:
    shell.configure("notes")
    shell.server.fail("memory://secret-host/notes", OSError("no route to secret-host"))
    result = shell("init")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: database 'notes' cannot be read (OSError).")
    assert "secret-host" not in result.stderr


def test_init_makes_the_one_database_that_there_is_without_configuration(shell: Any) -> None:
    (shell.folder / "haiku.rag.yaml").unlink()
    assert shell("--db-name", "haiku.rag", "init").stdout.startswith("Created database 'haiku.rag' at /")


def test_a_missing_database_is_an_error_that_says_what_to_do(shell: Any) -> None:
    shell.configure("notes")
    for command in (["list"], ["get", "x"], ["info"], ["search", "x"], ["add", "x"], ["delete", "x"]):
        result = shell(*command)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == (
            "Error: database 'notes' does not exist. Create it with: haiku-rag --db-name 'notes' init\n"
        )


def test_add_stores_a_text_with_what_is_said_of_it(db: Any) -> None:
    options = ["--title", "Tides", "--uri", "note:1", "--format", "plain"]
    metadata = ["year=1945", 'name="7"', "tags=[1, 2]", "odd=NaN", "text=a=b"]
    stored = db.data("add", "The moon.", *options, *(part for text in metadata for part in ("--meta", text)))
    (document,) = db.data("get", "note:1")["results"]
    assert document["content"] == "The moon."
    assert document["metadata"] == {"year": 1945, "name": "7", "tags": [1, 2], "odd": "NaN", "text": "a=b"}
    assert (document["title"], document["source"], document["id"]) == ("Tides", "notes", stored["results"][0]["id"])
    assert "content" not in stored["results"][0]


def test_add_reads_standard_input_as_utf_8(db: Any) -> None:
    result = db("add", "-", input="\ufeffTiếng Việt テスト".encode())
    assert result.stdout.startswith("Stored document ")
    assert db.data("get", db.data("list")["results"][0]["id"])["results"][0]["content"] == "Tiếng Việt テスト"
    refused = db("add", "-", input=b"\xff\xfe\xff")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: the text on standard input is not UTF-8.")


@pytest.mark.parametrize("text", ["novalue", "=x", " =x"])
def test_metadata_that_is_not_a_pair_is_wrong_usage(db: Any, text: str) -> None:
    result = db("add", "x", "--meta", text)
    assert result.exit_code == 2
    assert "is not of the form KEY=VALUE" in result.stderr


def test_list_shows_a_document_a_line_by_creation(db: Any) -> None:
    assert (db("list").stdout, db("list").stderr) == ("", "There are no documents to list.\n")
    for number in range(3):
        db("add", f"text {number}", "--title", f"T{number}\n[red]\x1b[31m")
    lines = db("list").stdout.splitlines()
    assert [line.split("  ")[1] for line in lines] == [f"T{number} [red][31m" for number in range(3)]
    documents = db.data("list", "--limit", "1", "--offset", "1")["results"]
    assert [(document["title"][:2], document["source"]) for document in documents] == [("T1", "notes")]
    assert "content" not in documents[0]


def test_a_filter_that_is_not_understood_is_one_line(db: Any) -> None:
    result = db("list", "-f", "nonsense")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_get_finds_by_id_title_and_uri_and_shows_the_text_literally(db: Any) -> None:
    document_id = db.data("add", "a [bold]b[/bold]\n\x1b]0;evil\x07c", "--title", "Odd", "--uri", "u:1")["results"][0][
        "id"
    ]
    shown = {db("get", name).stdout for name in (document_id, "Odd", "u:1")}
    (text,) = shown
    assert f"id: {document_id}\ntitle: Odd\nuri: u:1\ndatabase: notes\n" in text
    assert text.endswith("\n\na [bold]b[/bold]\n]0;evilc\n")


def test_K7_get_and_delete_of_nothing_end_with_1(db: Any) -> None:
    for command in ("get", "delete", "rm"):
        result = db(command, "nope")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == "Error: database 'notes' holds no document 'nope'.\n"


def test_delete_removes_a_document(db: Any) -> None:
    first, second = (db.data("add", text)["results"][0]["id"] for text in ("one", "two"))
    assert db("rm", first).stdout == f"Deleted document {first} from 'notes'.\n"
    assert db.data("delete", second)["results"] == [{"id": second, "source": "notes"}]
    assert db.data("list")["results"] == []


def test_info_says_where_a_database_is_and_what_is_in_it(db: Any) -> None:
    db("add", "one")
    text = db("info").stdout
    assert text.startswith("database: notes\nlocation: memory://secret-host/notes\nstorage: memory, schema version 1\n")
    assert "documents: 1\nchunks: 1\nupdated: " in text
    (result,) = db.data("info")["results"]
    assert (result["source"], result["location"], result["documents"]) == ("notes", "memory://secret-host/notes", 1)


def test_what_a_database_does_not_record_is_not_shown() -> None:
    ref = DatabaseRef(name="old", location="s3://me:word@host/old", storage="memory", tag="v1")
    info = DatabaseInfo(
        storage="memory",
        schema_version=1,
        documents=0,
        chunks=0,
        identity=None,
        size_bytes=2_340_000,
        indexes={"text": "ready"},
    )
    assert list(info_lines(ref, info)) == [
        "database: old",
        "location: s3://***@host/old",
        "tag: v1",
        "storage: memory, schema version 1",
        "documents: 0",
        "chunks: 0",
        "size: 2.3 MB",
        "embedding: not recorded",
        "language: none, words are not stemmed",
        "index text: ready",
    ]


@pytest.mark.parametrize("command", [["init"], ["add", "x"], ["add-src", "x"], ["delete", "x"]])
def test_read_only_refuses_what_writes(db: Any, command: list[str]) -> None:
    result = db("--read-only", *command)
    assert result.exit_code == 1
    assert "writes, and --read-only was given" in result.stderr


def test_a_tagged_entry_is_read_by_what_reads_only(shell: Any) -> None:
    shell.configure(memory={"databases": {"old": {"location": "memory://old", "tag": "v1"}}})
    assert "works on the live database" in shell("add", "x").stderr
    result = shell("list", "--at", "v2")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


def test_reading_at_a_tag_is_passed_on(db: Any) -> None:
    for command in (["list"], ["get", "x"], ["info"], ["search", "x"]):
        result = db(*command, "--at", "v9")
        assert result.exit_code == 1
        assert "v9" in result.stderr


def test_add_src_stores_files_and_folders(db: Any, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("a.md", "b.txt"):
        (folder / name).write_text(f"# {name}\n\ntext of {name}")
    (tmp_path / "c.md").write_text("more")
    result = db("add-src", "texts", "c.md", "--meta", "kind=note")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "3 documents are stored in 'notes'.\n", "")
    documents = db.data("list")["results"]
    assert {document["metadata"]["kind"] for document in documents} == {"note"}
    again = db.data("add-src", "c.md")
    assert [document["uri"] for document in again["results"]] == [(tmp_path / "c.md").as_uri()]
    assert again["report"] == {"source": "notes", "failures": []}


def test_add_src_lists_what_failed_with_reasons_and_stores_the_rest(db: Any, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("good")
    (tmp_path / "bad.md").write_bytes(b"\xff\xff")
    (tmp_path / "empty").mkdir()
    result = db("add-src", "bad.md", "gone.md", "empty", "good.md", "ftp://host/x")
    assert (result.exit_code, result.stdout) == (1, "1 document is stored in 'notes'.\n")
    lines = result.stderr.splitlines()
    assert lines[0].startswith(f"Failed: {(tmp_path / 'bad.md').as_uri()}: ")
    assert lines[1] == f"Failed: gone.md: there is no file or folder '{tmp_path / 'gone.md'}'."
    assert lines[2] == "Failed: empty: it holds no file that an installed converter reads."
    assert lines[3].startswith("Failed: ftp://host/x: no installed plugin reads 'ftp://' sources.")
    assert lines[4:] == ["Error: 4 of 5 could not be stored; the reasons are above."]


def test_add_src_prints_one_document_also_when_some_failed(db: Any) -> None:
    result = db("add-src", "gone.md", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["results"] == []
    assert document["report"]["failures"][0]["uri"] == "gone.md"


@pytest.mark.parametrize(
    ("error", "end"), [(KeyboardInterrupt(), (130, "Interrupted")), (OSError("gone"), (1, "Stopped"))]
)
def test_what_was_committed_before_the_end_stays_and_is_told(
    db: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, end: tuple[int, str]
) -> None:
    status, first = end
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(f"text {name}")
    write, writes = MemoryDatabase.write, []

    async def second_fails(self: Any, documents: Any) -> Any:
        writes.append(documents)
        if len(writes) > 1:
            raise error
        return await write(self, documents)

    monkeypatch.setattr(MemoryDatabase, "write", second_fails)
    result = db("add-src", "a.md", "b.md")
    assert result.exit_code == status
    assert result.stderr.splitlines()[0] == f"{first}; what was committed stays: 1 document is stored in 'notes'."
    assert len(db.data("list")["results"]) == 1
