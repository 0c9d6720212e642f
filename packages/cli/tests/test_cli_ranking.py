"""search: what the command line shows of duplicates, of other embeddings, and of how a ranking came about."""

from typing import Any

import pytest

from haiku.rag.errors import RerankError
from haiku.rag.testing import OverlapReranker

SAME = "The tide is a wave as long as half of the sea."
OTHER_MODEL = {"provider": "hash", "name": "other", "vector_dim": 12}


@pytest.fixture
def copies(shell: Any) -> Any:
    """Two databases that share a passage."""
    shell.configure("wiki", "archive")
    shell.fill("wiki", SAME, "The tide of the wiki.")
    shell.fill("archive", SAME, "The tide of the archive.")
    return shell


@pytest.fixture
def mixed(shell: Any) -> Any:
    """Two databases of different embeddings."""
    shell.configure("sea", "land", embeddings={"model": OTHER_MODEL})
    shell.fill("land", "The tide of the grass.", "A hill.")
    shell.configure("sea", "land")
    shell.fill("sea", "The moon pulls the tide.", "Ships sail.")
    return shell


def test_R13_a_duplicate_is_shown_once_and_names_where_else_it_is(copies: Any) -> None:
    text = copies("search", "tide wave", "--dedupe").stdout
    assert text.count(SAME) == 1
    assert "\n   database: wiki\n   also in archive: " in text
    assert copies("search", "tide wave").stdout.count(SAME) == 2
    assert "also in" not in copies("search", "tide wave").stdout


def test_R13_a_duplicate_is_in_the_json_and_in_the_explanation(copies: Any) -> None:
    found = copies.data("search", "tide wave", "--dedupe")
    assert [[copy["source"] for copy in hit["also_in"]] for hit in found["results"]] == [["archive"], [], []]
    assert found["report"]["duplicates"] == 1
    assert "\nduplicates named beside a result: 1\n" in copies("search", "tide", "--dedupe", "--explain").stdout


def test_R13_the_option_overrides_the_configuration_in_both_directions(copies: Any) -> None:
    copies.configure("wiki", "archive", search={"dedupe": True})
    assert len(copies.data("search", "tide")["results"]) == 3
    assert len(copies.data("search", "tide", "--no-dedupe")["results"]) == 4


def test_R6_explain_prints_scores_and_ranks_before_and_after_each_stage(copies: Any) -> None:
    copies.configure("wiki", "archive", reranking={"model": {"provider": "overlap"}})
    ranking = ["--fusion", "calibrated", "--weight", "wiki=0.5", "--boost", "archive=2", "-l", "4"]
    text = copies("search", "tide wave", "--explain", *ranking).stdout
    first = text.partition("\nresults:\n")[2].splitlines()[:3]
    assert first[0].startswith("  1. score 3.0000, chunk ")
    assert first[0].endswith(" of 'archive'")
    assert first[1].startswith("     vector 0.")
    assert "; keyword " in first[1]
    assert ", share 0." in first[1]
    assert first[1].endswith(" (rank 1); in the database rank 1")
    assert first[2].startswith("     fused 0.")
    assert first[2].endswith("; reranked 1.0000 (rank 2); weighted 1.0000; boost 2")


def test_R6_explain_prints_a_dash_for_what_a_stage_does_not_know(copies: Any) -> None:
    assert "keyword -;" in copies("search", "tide", "--explain", "-s", "vector").stdout
    text = copies("search", "tide", "--explain", "-s", "fts").stdout
    assert "     vector -; keyword " in text
    assert "; reranked -; weighted " in text


def test_C4_search_covers_other_embeddings_where_the_configuration_allows_them(mixed: Any) -> None:
    refused = mixed("search", "tide")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith("Error: database 'land' was written with hash/other, 12 dimensions")
    mixed.configure("sea", "land", search={"mixed_embedders": "allow"})
    found = mixed("search", "tide")
    assert "database: land" in found.stdout
    assert found.stderr.startswith("Warning: the databases were written with 2 embedding models")
    assert found.stderr.count("\n") == 1


def test_R14_a_threshold_that_can_never_pass_is_wrong_usage_and_in_the_configuration_a_fault(copies: Any) -> None:
    result = copies("search", "tide", "--min-score", "1.5")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error: min_score 1.5 can never pass: scores of 'cosine' lie between -1 and 1.\n"
    copies.configure("wiki", "archive", search={"min_score": 1.5})
    assert copies("search", "tide").stderr.startswith("Error: search.min_score: 1.5 can never pass: ")


def test_R2_case_6_the_sentence_of_a_failing_reranker_is_shown(copies: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> Any:
        raise RerankError("the server answered 503, try again later.")

    monkeypatch.setattr(OverlapReranker, "rerank", refuse)
    copies.configure("wiki", "archive", reranking={"model": {"provider": "overlap"}})
    told = "failed (the server answered 503, try again later)"
    assert copies("search", "tide").stderr == f"Warning: reranking {told}; the fused order stands.\n"
    result = copies("search", "tide", "--json")
    assert f'"rerank": "{told}"' in result.stdout
    copies.configure("wiki", "archive", reranking={"model": {"provider": "overlap"}, "required": True})
    assert copies("search", "tide").exit_code == 1
