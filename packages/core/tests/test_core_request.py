"""What a search request refuses."""

from typing import Any

import pytest

from haiku.rag.federation import SearchRequest


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"limit": 0}, "limit must be at least 1, not 0"),
        ({"search_type": "fuzzy"}, "search_type must be 'hybrid', 'vector' or 'fts', not 'fuzzy'"),
        ({"weights": {"a": -0.1}}, "the weight or boost of 'a' must be a finite number"),
        ({"weights": {"a": float("nan")}}, "the weight or boost of 'a' must be a finite number"),
        ({"boosts": {"b": float("inf")}}, "the weight or boost of 'b' must be a finite number"),
        ({"min_score": float("nan")}, "min_score must be a finite number"),
        ({"on_unavailable": "ignore"}, "on_unavailable must be 'raise', 'skip' or a list of names, not 'ignore'"),
    ],
)
def test_a_request_that_cannot_be_served_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SearchRequest(**{"query": "q", "sources": ("a",), "limit": 5, **given})


@pytest.mark.parametrize("query", ["", "  \t\n", "\0", " \0 ", b""])
def test_nothing_to_search_for_is_blank(query: str | bytes) -> None:
    assert SearchRequest(query=query, sources=("a",), limit=1).is_blank


def test_an_image_has_no_text() -> None:
    request = SearchRequest(query=b"\x89PNG", sources=("a",), limit=1)
    assert request.text is None
    assert not request.is_blank


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"query": None}, "query does not take a NoneType"),
        ({"limit": "5"}, "limit does not take a str"),
        ({"limit": 1.5}, "limit does not take a float"),
        ({"filter": 5}, "filter does not take a int"),
        ({"fusion": 3}, "fusion does not take a int"),
        ({"weights": [1]}, "weights does not take a list"),
        ({"on_unavailable": 5}, "on_unavailable does not take a int"),
    ],
)
def test_an_argument_of_a_wrong_type_is_told_by_its_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        SearchRequest(**{"query": "q", "sources": ("a",), "limit": 5, **given})
