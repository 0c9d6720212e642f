"""search, and which databases a command works on."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from haiku.rag.cli.results import result_lines
from haiku.rag.models import SearchResult
from haiku.rag.plugins import hookimpl
from haiku.rag.testing import OverlapReranker, testing_plugin

TEXT = "# Moon\n\nThe moon pulls [/red] the\x1b[31m tide."


@pytest.fixture
def two(shell: Any) -> Any:
    """A shell with two configured databases that hold texts."""
    shell.configure("sea", "land")
    shell.fill("sea", TEXT, "Ships sail on the tide.")
    shell.fill("land", "The tide of the grass.", "A hill.")
    return shell


def test_K1_search_covers_the_configured_set_and_K5_labels_results(two: Any) -> None:
    result = two("search", "tide", "-l", "3")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "   database: sea\n" in result.stdout
    assert "   database: land\n" in result.stdout
    assert "secret-host" not in result.stdout
    found = two.data("search", "tide")
    assert {entry["source"] for entry in found["results"]} == {"sea", "land"}
    assert [entry["name"] for entry in found["report"]["databases"]] == ["sea", "land"]


@pytest.mark.parametrize("before", [["--db-name", "sea"], []])
def test_K5_a_search_in_one_database_labels_nothing(two: Any, before: list[str]) -> None:
    after = [] if before else ["--source", "sea", "--source", "sea"]
    text = two(*before, "search", "tide moon", *after).stdout
    assert "database:" not in text
    assert "land" not in text
    assert text.startswith("1. ")
    assert "  Moon\n   Moon\n\n   The moon pulls [/red] the[31m tide.\n\n" in text


def test_sources_are_searched_in_any_number(two: Any) -> None:
    both = two.data("search", "tide", "--source", "land", "--source", "sea")
    assert [entry["name"] for entry in both["report"]["databases"]] == ["land", "sea"]
    unknown = two("search", "tide", "--source", "lnad")
    assert unknown.exit_code == 2
    assert unknown.stderr == "Error: no database 'lnad' is covered. Covered: 'sea', 'land'. Did you mean 'land'?\n"


def test_explain_shows_the_report(two: Any) -> None:
    two("--db-name", "sea", "add", "Tide and time.")
    text = two("search", "tide", "--explain", "-l", "2", "--min-score", "0.2").stdout
    assert "fusion: cosine; rerank: off; candidates: " in text
    assert "\nstages: open " in text
    assert "\ndatabases:\n  sea: ok, " in text
    assert "\nresults:\n  1. score " in text
    assert "below the least score: " in two("search", "tide", "--explain", "--min-score", "0.99").stdout
    assert "keyword -" in two("search", "tide", "--explain", "-s", "vector").stdout


def test_K7_nothing_found_is_a_sentence_and_no_failure(two: Any) -> None:
    result = two("search", "zeppelin", "-s", "fts")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Nothing was found.\n")
    assert two.data("search", "zeppelin", "-s", "fts")["results"] == []


def test_what_a_threshold_removed_is_said_when_nothing_is_left(two: Any) -> None:
    result = two("search", "tide", "--min-score", "0.999")
    assert result.stdout == ""
    assert re.fullmatch(r"Nothing was found\. \d+ candidates scored below the least score\.\n", result.stderr)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["list", "--db-name", "sea"], "'--db-name' goes before the command: haiku-rag --db-name … list"),
        (["tag", "list", "--db-name", "sea"], "'--db-name' goes before the command: haiku-rag --db-name … tag list"),
        (["search", "x", "--read-only"], "'--read-only' goes before the command: haiku-rag --read-only … search"),
        (["--db", "sea", "info"], "No such option '--db' before the command. A command's own options come after it."),
    ],
)
def test_an_option_on_the_wrong_side_of_the_command_is_put_right(two: Any, arguments: list[str], advice: str) -> None:
    result = two(*arguments)
    assert result.exit_code == 2
    assert advice in result.stderr


def test_an_option_that_nothing_has_is_told_as_click_does(two: Any) -> None:
    result = two("list", "--limt", "3")
    assert result.exit_code == 2
    assert "--limit" in result.stderr


def test_the_ranking_options_are_passed_on(two: Any) -> None:
    boosted = two.data("search", "tide", "--boost", "land=10", "--fusion", "rrf", "-l", "1")
    assert (boosted["results"][0]["source"], boosted["report"]["fusion"]) == ("land", "rrf")
    weighed = two.data("search", "tide", "--weight", "land=0")
    assert {entry["source"] for entry in weighed["results"]} == {"sea"}


@pytest.mark.parametrize(
    "arguments",
    [
        [""],
        [" \n"],
        ["x", "-l", "0"],
        ["x", "-s", "odd"],
        ["x", "--weight", "sea"],
        ["x", "--weight", "sea=heavy"],
        ["x", "--weight", "sea=-1"],
        ["x", "--weight", "sea=nan"],
        ["x", "--boost", "nowhere=1"],
        ["x", "--min-score", "inf"],
        ["x", "--on-unavailable", "sea,nowhere"],
        ["x", "--db", "a.memory", "--source", "sea"],
        ["x", "--at", "v1"],
        [],
    ],
)
def test_K7_wrong_usage_ends_with_2_and_prints_no_data(two: Any, arguments: list[str]) -> None:
    result = two("search", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("Error: ")


def test_a_database_left_out_is_a_warning_each(two: Any) -> None:
    two.server.drop("memory://secret-host/land")
    failed = two("search", "tide")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr == "Error: database 'land' does not exist. Create it with: haiku-rag --db-name 'land' init\n"
    for answer in ("skip", "sea", " sea , "):
        result = two("search", "tide", "--on-unavailable", answer)
        assert result.exit_code == 0
        assert "1. " in result.stdout
        assert result.stderr == (
            "Warning: database 'land' was left out (missing): database 'land' does not exist. "
            "Create it with: haiku-rag --db-name 'land' init\n"
        )
    assert two("search", "tide", "--on-unavailable", "raise").exit_code == 1


def test_P5_no_location_of_a_configured_database_is_printed(two: Any) -> None:
    two.server.fail("memory://secret-host/land", OSError("memory://secret-host/land is gone"))
    for result in (
        two("search", "tide"),
        two("search", "tide", "--on-unavailable", "skip"),
        two("--verbose", "search", "x"),
    ):
        assert "secret-host" not in result.output


def test_a_reranker_that_fails_is_a_warning(two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("refused")

    monkeypatch.setattr(OverlapReranker, "rerank", refuse)
    two.configure("sea", "land", reranking={"model": {"provider": "overlap"}})
    result = two("search", "tide")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: reranking failed (")
    assert result.stderr.endswith("; the fused order stands.\n")


def test_what_a_search_warns_of_is_printed(two: Any) -> None:
    @hookimpl
    def after_search(results: Any) -> Any:
        results.report.warnings.append("the weather may change")

    plugin = SimpleNamespace(haiku_rag_after_search=after_search)
    two.use(testing_plugin(plugin, name="weather"))
    two.configure("sea", hooks=["weather"])
    assert two("search", "tide").stderr == "Warning: the weather may change\n"


@pytest.mark.parametrize(
    "command", [["init"], ["add", "x"], ["add-src", "x"], ["list"], ["get", "x"], ["delete", "x"], ["info"]]
)
def test_K3_every_other_command_needs_one_database(two: Any, command: list[str]) -> None:
    result = two(*command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "needs one database, and several are configured: 'sea', 'land'." in result.stderr
    assert result.stderr.endswith("Choose one with --db-name NAME before the command, or --db PATH after it.\n")


@pytest.mark.parametrize("command", [["init"], ["list"], ["search", "x"], ["add", "x"]])
def test_K3_both_selectors_at_once_are_an_error(two: Any, command: list[str]) -> None:
    result = two("--db-name", "sea", *command, "--db", "x.memory")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error: --db-name and --db both choose the database. Give one of them.\n"


def test_K4_db_opens_a_local_path_named_by_its_stem_whatever_is_configured(two: Any) -> None:
    assert two("init", "--db", "own.memory").stdout.startswith("Created database 'own' at /")
    assert two("add", "A tide of mine.", "--db", "own.memory").exit_code == 0
    assert [entry["source"] for entry in two.data("search", "tide", "--db", "own.memory")["results"]] == ["own"]
    assert [entry["source"] for entry in two.data("list", "--db", "own.memory")["results"]] == ["own"]
    assert two("list", "--db", "").exit_code == 2


def test_K4_db_name_selects_an_entry_and_an_unknown_one_is_wrong_usage(two: Any) -> None:
    assert len(two.data("--db-name", "land", "list")["results"]) == 2
    result = two("--db-name", "sky", "list")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: no database 'sky' is covered. Covered: 'sea', 'land'.")


def test_read_only_searches(two: Any) -> None:
    assert two("--read-only", "search", "tide").exit_code == 0


def test_a_document_with_pages_headings_and_without_title_is_shown(two: Any) -> None:
    def lines(**facts: Any) -> list[str]:
        shared = {"content": "a\r\nb", "score": 0.5, "source": "sea", "chunk_id": "c", "document_id": "d"}
        return list(result_lines(1, SearchResult(**{**shared, **facts}), labelled=False))

    assert lines(headings=["A", "B\nC"], page_numbers=[3]) == [
        "1. 0.5000  (no title)", "   A > B C; page 3", "", "   a", "   b", "",
    ]  # fmt: skip
    assert lines(document_uri="u:\x1b1", page_numbers=[3, 4])[1:3] == ["   u:1", "   pages 3, 4"]
