"""The data that goes in and comes out, and the errors."""

import pickle
from pathlib import Path

import pytest

from haiku.rag import errors
from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import HaikuRagError, UnknownDatabaseError
from haiku.rag.errors import tree as error_tree
from haiku.rag.models import Chunk, DatabaseReport, EmbeddingIdentity, SearchReport, SearchResults
from haiku.rag.models.text import clean_text

ALL = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("error", ALL)
def test_every_error_derives_from_the_root_and_says_its_message(error: type[HaikuRagError]) -> None:
    made = error("a sentence.", source="a")
    assert isinstance(made, HaikuRagError)
    assert (str(made), made.source) == ("a sentence.", "a")


@pytest.mark.parametrize("error", ALL)
def test_every_error_survives_pickling(error: type[HaikuRagError]) -> None:
    made = pickle.loads(pickle.dumps(error("a sentence.", source="a")))
    assert (type(made), str(made), made.source) == (error, "a sentence.", "a")


def test_the_tree_at_the_top_names_every_error() -> None:
    assert error_tree.__doc__ is not None
    for name in errors.__all__:
        assert name in error_tree.__doc__


def test_a_key_error_reads_as_a_sentence() -> None:
    error = UnknownDatabaseError("no database 'x' is covered.")
    assert isinstance(error, KeyError)
    assert str(error) == "no database 'x' is covered."


def test_a_location_does_not_show_when_a_reference_is_printed() -> None:
    assert "hidden" not in repr(DatabaseRef(name="a", location="/hidden/a", storage="memory"))


def test_a_reference_has_a_path_only_when_it_is_local() -> None:
    assert DatabaseRef(name="a", location="/x/a", storage="memory").path == Path("/x/a")
    assert DatabaseRef(name="a", location="s3://x/a", storage="memory").path is None


def test_the_headings_above_a_passage_are_part_of_what_is_embedded() -> None:
    assert Chunk(content="text", headings=["One", "Two"]).contextualized() == "One\nTwo\ntext"


def test_an_identity_describes_itself_in_one_phrase() -> None:
    plain = EmbeddingIdentity(provider="local", model="mini", dimension=3)
    assert plain.describe() == "local/mini, 3 dimensions"
    prefixed = EmbeddingIdentity(provider="local", model="mini", dimension=3, document_prefix="p: ")
    assert prefixed.describe() == "local/mini, 3 dimensions, document prefix 'p: '"


def test_results_are_a_list_that_carries_its_report() -> None:
    report = SearchReport(
        databases=[
            DatabaseReport(name="a", status="ok"),
            DatabaseReport(name="b", status="missing", reason="database 'b' does not exist."),
        ]
    )
    results = SearchResults([], report=report)
    assert results == []
    assert [entry.name for entry in results.report.left_out] == ["b"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [("a\0b", "ab"), ("\ud800x", "\ufffdx"), ("\ud83d\ude00", "\N{GRINNING FACE}"), ("plain", "plain")],
)
def test_text_is_cleaned_of_what_no_store_takes(text: str, clean: str) -> None:
    assert clean_text(text) == clean
