"""Filters evaluated over a state: compared with `selects`, value by value, and what is kept between filters."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haiku.rag.contracts.filters import Comparison, FilterOperator, Not, Or
from haiku.rag.storage.lancedb import metadata as metadata_module
from haiku.rag.storage.lancedb.filter_rows import selected
from haiku.rag.storage.lancedb.schema import DOCUMENT_FIELDS
from haiku.rag.storage.lancedb.state import DocumentState, document_from_row
from haiku.rag.testing.random_filters import MARCH, RandomFilters
from haiku.rag.testing.selection import selects

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
    | st.sampled_from(["2026-03-01", "2026-03-01T00:00:00Z", "2026-02-30"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)


def state_of(*rows, version=1, earlier=None):
    """A state of documents with these fields; metadata as an object or as its text."""
    made = [
        {
            "key": f"id:{number}",
            "id": f"id-{number:06}",
            "revision": f"revision-{number}",
            "created_at": MARCH + timedelta(microseconds=number),
            "updated_at": MARCH,
            "content": "",
            "chunk_count": 1,
            **row,
            "metadata": held if isinstance(held := row.get("metadata", {}), str) else json.dumps(held),
        }
        for number, row in enumerate(rows)
    ]
    table = pa.Table.from_pylist(made, schema=pa.schema(DOCUMENT_FIELDS))
    return DocumentState(table, version=version, uid=b"uid", earlier=earlier)


def documents(state):
    return [document_from_row(row) for row in state.rows(range(len(state)))]


def agrees(state, condition):
    places = selected(state, condition)
    assert places.dtype == np.int64
    expected = [place for place, document in enumerate(documents(state)) if selects(condition, document)]
    assert places.tolist() == expected, condition
    return expected


@pytest.mark.parametrize("seed", range(8))
def test_random_filters_select_what_they_say(seed):
    made = RandomFilters(seed)
    state = state_of(
        *({"title": made.text(), "uri": made.text(), "metadata": made.metadata()} for _ in range(60)),
    )
    made = RandomFilters(seed + 100, moments=tuple(document.created_at for document in documents(state)[:5]))
    sizes = {len(agrees(state, made.filter())) for _ in range(150)}
    assert len(sizes) > 20


@given(st.lists(JSON_VALUES, max_size=5), JSON_VALUES, st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in"]))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_metadata_value_compares_as_it_says(held, value, operator):
    state = state_of(*({"metadata": {"k": each}} for each in [*held, value]))
    for each in value if isinstance(value, list) else [value]:
        is_number = isinstance(each, int | float) and not isinstance(each, bool)
        if isinstance(each, list | dict | None) or (is_number and not abs(each) < float("inf")):
            continue
        if isinstance(each, bool) and operator not in ("=", "!=", "in"):
            continue
        agrees(state, Comparison("metadata.k", operator, (each, 1, "a") if operator == "in" else each))
    agrees(state, Comparison("metadata.k", operator, (MARCH,) if operator == "in" else MARCH))
    agrees(state, Comparison("metadata.k.a", operator, (0,) if operator == "in" else 0))


@given(
    st.lists(TEXTS, max_size=5),
    st.lists(st.sampled_from(["%", "_", "\\%", "\\_", "\\\\", "a", "\n", "橋", "."])),
    TEXTS,
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_pattern_is_like_what_it_says(titles, parts, plain):
    escaped = plain.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    state = state_of(*({"title": title} for title in [*titles, plain, "a%_\\b", "", None]))
    agrees(state, Comparison("title", "like", "".join(parts)))
    assert len(titles) in agrees(state, Comparison("title", "like", escaped))
    assert len(titles) in agrees(state, Comparison("title", "like", f"%{escaped}%"))


@given(st.lists(TEXTS | st.none(), max_size=6), TEXTS, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_texts_are_in_the_order_of_their_code_points(titles, value, operator):
    agrees(state_of(*({"title": title} for title in titles)), Comparison("title", operator, value))


def test_large_numbers_are_as_exact_as_they_are():
    exact = 2**53
    state = state_of(*({"metadata": {"n": n}} for n in (exact, exact + 1, exact + 2, float(exact), 2.5, 10**400)))
    assert selected(state, Comparison("metadata.n", "=", exact + 1)).tolist() == [1]
    assert selected(state, Comparison("metadata.n", "in", (exact, 2.5))).tolist() == [0, 3, 4]
    assert selected(state, Comparison("metadata.n", ">", exact)).tolist() == [1, 2, 5]
    small = state_of(*({"metadata": {"n": n}} for n in (float(exact), 1)))
    assert selected(small, Comparison("metadata.n", "=", exact + 1)).tolist() == []
    assert selected(small, Comparison("metadata.n", "in", (exact + 1, 1))).tolist() == [1]


def test_what_is_not_a_number_satisfies_nothing():
    state = state_of({"metadata": {"n": float("nan")}}, {"metadata": {"n": 1}}, {"metadata": {"n": float("inf")}})
    expectations: tuple[tuple[FilterOperator, list[int]], ...] = (("=", []), ("!=", [1, 2]), ("<", [1]), (">=", [2]))
    for operator, expected in expectations:
        assert selected(state, Comparison("metadata.n", operator, 2)).tolist() == expected


def test_values_are_cleaned_as_what_is_stored_was():
    state = state_of({"title": "ab\ufffd", "metadata": {"k": "a\0\ufffd", "\ufffd": 1}})
    assert selected(state, Comparison("title", "=", "a\0b\ud800")).tolist() == [0]
    assert selected(state, Comparison("title", "like", "a\0%")).tolist() == [0]
    assert selected(state, Comparison("metadata.k", "=", "a\0\ud800")).tolist() == [0]
    assert selected(state, Comparison("metadata.k", "=", "a\ufffd")).tolist() == []
    assert selected(state, Comparison("metadata.\ud800", "in", (1, "a"))).tolist() == [0]


def test_a_list_of_alternatives_is_evaluated_as_one():
    state = state_of(*({"title": f"t{number}", "metadata": {"n": number}} for number in range(20)))
    chosen = Or(
        (
            *(Comparison("title", "=", f"t{number}") for number in range(5)),
            *(Comparison("metadata.n", "=", number) for number in (4, 5)),
            Not(Comparison("metadata.n", "<", 19)),
        )
    )
    assert agrees(state, chosen) == [0, 1, 2, 3, 4, 5, 19]


def test_an_empty_state_selects_nothing():
    state = state_of()
    for field, value in (("title", "a"), ("created_at", MARCH), ("metadata.k", 1), ("metadata.k", MARCH)):
        for operator in ("=", "!=", "<"):
            assert selected(state, Comparison(field, operator, value)).tolist() == []


def test_metadata_is_parsed_once_and_what_stays_is_taken_over(monkeypatch):
    parsed = []

    def loads(text):
        parsed.append(text)
        return json.loads(text)

    monkeypatch.setattr(metadata_module, "json", SimpleNamespace(loads=loads))
    rows = [{"metadata": {"n": number}} for number in range(metadata_module.AT_ONCE + 1)]
    state = state_of(*rows)
    assert parsed == []
    for _ in range(3):
        assert len(selected(state, "metadata.n >= 500")) == 1
        assert len(selected(state, "metadata.m = 1")) == 0
    assert len(parsed) == 2
    parsed.clear()
    between = state_of(*rows, earlier=state)
    after = state_of(*rows[1:], {"metadata": {"n": "new"}}, earlier=between)
    assert selected(after, "metadata.n = 'new' OR metadata.n = 1").tolist() == [0, len(rows) - 1]
    assert parsed == ['[{"n": "new"}]']


def test_only_the_last_keys_are_remembered():
    state = state_of({"metadata": {"k1": 1}})
    for number in range(metadata_module.MOST_COLUMNS * 2):
        assert len(selected(state, Comparison(f"metadata.k{number}", "=", 1))) == (number == 1)
    column = state.metadata.column("k63")
    assert state.metadata.column("k63") is column
    for number in range(metadata_module.MOST_COLUMNS):
        state.metadata.column(f"other{number}")
    assert state.metadata.column("k63") is not column


def test_moments_at_the_ends_of_time_compare():
    state = state_of({"created_at": datetime(1, 1, 1, tzinfo=UTC)}, {"created_at": datetime(9999, 12, 31, tzinfo=UTC)})
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert selected(state, Comparison("created_at", "<=", first)).tolist() == [0]
    assert selected(state, Comparison("created_at", "<", last)).tolist() == [0, 1]
    assert selected(state, "created_at >= '9999-12-31T23:00:00+23:59'").tolist() == [1]
    assert selected(state, "created_at < '0001-01-01T00:00:00+14:00'").tolist() == []
