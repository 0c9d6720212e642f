"""What filters may be made of, and what their values mean."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from haiku.rag.contracts import And, Comparison, Filter, Not, Or, check_filter, kind_of, metadata_value, moment_of
from haiku.rag.contracts.filter_values import MAX_DEPTH, MAX_PARTS, MAX_PATTERN
from haiku.rag.errors import FilterError
from haiku.rag.models import Document
from haiku.rag.testing.selection import selector, selects

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
FIELDS = "Known: id, uri, title, created_at, updated_at. A key of the metadata is written"


WILDCARDS = "The operator 'like' takes text with the wildcards % and _."


def refusal(filter: Any) -> str:
    with pytest.raises(FilterError) as caught:
        check_filter(filter)
    return str(caught.value)


@pytest.mark.parametrize(
    ("comparison", "sentence"),
    [
        (("colour", "=", "red"), f"the filter names an unknown field 'colour'. {FIELDS} metadata.colour."),
        (
            ("Titel", "=", "a"),
            f"the filter names an unknown field 'Titel'. Did you mean 'title'? {FIELDS} metadata.Titel.",
        ),
        (("metadata", "=", "a"), f"the filter names an unknown field 'metadata'. {FIELDS} metadata.KEY."),
        (("", "=", "a"), f"the filter names an unknown field ''. {FIELDS} metadata.KEY."),
        ((5, "=", "a"), f"the filter names an unknown field '5'. {FIELDS} metadata.5."),
        (("x" * 90, "=", "a"), f"the filter names an unknown field '{'x' * 80}…'. {FIELDS} metadata.{'x' * 80}…."),
        (("metadata. ", "=", "a"), "the filter names no key after 'metadata.'. Write metadata.KEY."),
        (
            ("metadata." + "k" * 1000, "=", "a"),
            "the filter names a metadata key of more than 1,000 characters. Documents have none.",
        ),
        (
            ("title", "==", "a"),
            "the filter compares 'title' by an unknown operator. Known: =, !=, <, <=, >, >=, in, like.",
        ),
        (("title", "in", "a"), "the filter's operator 'in' for 'title' takes a tuple of values."),
        (("title", "in", ["a"]), "the filter's operator 'in' for 'title' takes a tuple of values."),
        (("title", "=", ("a",)), "the filter's operator '=' for 'title' takes one value."),
        (("title", "=", None), "the filter compares 'title' with NoneType. It takes text."),
        (("title", "like", 5), "the filter compares 'title' with a number. It takes text."),
        (("created_at", "<", "2026-03-01"), "the filter compares 'created_at' with text. It takes a datetime."),
        (("created_at", "<", date(2026, 3, 1)), "the filter compares 'created_at' with date. It takes a datetime."),
        (
            ("created_at", "<", datetime(2026, 3, 1)),
            "the filter compares 'created_at' with a datetime without a zone. Give it one, such as tzinfo=UTC.",
        ),
        (
            ("metadata.n", "=", {}),
            "the filter compares 'metadata.n' with dict. It takes text or a number or true or false or a datetime.",
        ),
        (
            ("metadata.n", "=", float("nan")),
            "the filter compares 'metadata.n' with a number that is not finite. Give one that is.",
        ),
        (
            ("metadata.n", "in", (1, 10**400)),
            "the filter compares 'metadata.n' with a number that is not finite. Give one that is.",
        ),
        (
            ("metadata.n", ">=", True),
            "the filter compares 'metadata.n' with true or false by '>='. They have no order: use =, != or in.",
        ),
        (
            ("metadata.n", "like", 5),
            f"the filter's pattern for 'metadata.n' is no text. {WILDCARDS}",
        ),
        (
            ("title", "like", "a" * (MAX_PATTERN + 1)),
            "the filter's pattern for 'title' is longer than 2,000 characters. Shorten it.",
        ),
        (
            ("title", "like", "a\\\\\\"),
            "the filter's pattern for 'title' ends in a single backslash, which makes nothing plain. Double it.",
        ),
    ],
)
def test_a_comparison_that_means_nothing_is_refused_with_a_sentence(comparison: Any, sentence: str) -> None:
    assert refusal(Comparison(*comparison)) == sentence


def test_a_filter_is_made_of_filters() -> None:
    sentence = "a filter is made of Comparison, And, Or and Not; this one holds something else ({})."
    assert refusal("title = 'a'") == sentence.format("str")
    assert refusal(Not(None)) == sentence.format("NoneType")  # type: ignore[arg-type]
    assert refusal(And(("title = 'a'",))) == sentence.format("str")  # type: ignore[arg-type]
    assert refusal(Or(Not(And(())))) == "the filter's Or takes a tuple of filters."  # type: ignore[arg-type]
    assert refusal(And([])) == "the filter's And takes a tuple of filters."  # type: ignore[arg-type]


def test_a_filter_is_neither_endlessly_deep_nor_endlessly_wide() -> None:
    deep: Filter = Comparison("title", "=", "a")
    for _ in range(MAX_DEPTH - 1):
        deep = Not(deep)
    check_filter(deep)
    assert refusal(Not(deep)) == "the filter is nested more than 100 levels deep. Write it flatter."
    doubled: Filter = Comparison("title", "=", "a")
    for _ in range(60):
        doubled = And((doubled, doubled))
    wide = "the filter has more than 100,000 parts. Use 'in' for many values of one field."
    assert refusal(doubled) == wide
    assert refusal(Or((Comparison("title", "=", "a"),) * (MAX_PARTS + 1))) == wide
    check_filter(Comparison("title", "in", ("a",) * 10_000))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "truth"),
        (1, "number"),
        (1.5, "number"),
        ("1", "text"),
        (MARCH, "moment"),
        (None, None),
        ([], None),
        (date(2026, 3, 1), None),
    ],
)
def test_a_value_has_one_kind(value: object, kind: str | None) -> None:
    assert kind_of(value) == kind


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01", MARCH),
        ("2026-03-01T00:00", MARCH),
        ("2026-03-01 00:00:00Z", MARCH),
        ("2026-03-01T01:00:00+01:00", MARCH),
        ("2026-02-28T22:00-02", MARCH),
        ("2026-03-01T00:00:00.25", MARCH + timedelta(milliseconds=250)),
        ("2026-03-01T00:00:00.123456789Z", MARCH + timedelta(microseconds=123456)),
        ("2026-3-1", None),
        ("20260301", None),
        ("2026-W09-7", None),
        ("2026-02-29", None),
        ("2026-03-01T24:00", None),
        ("2026-03-01T", None),
        ("2026-03-01\n", None),
        (" 2026-03-01", None),
        ("2026-03-01T00:00+99:00", None),
        ("２０２６-03-01", None),
        ("", None),
    ],
)
def test_an_iso_text_is_a_moment(text: str, moment: datetime | None) -> None:
    assert moment_of(text) == moment


def test_a_key_is_looked_up_whole_and_then_by_its_parts() -> None:
    metadata = {"a": {"b": {"c": 1}, "x": None}, "a.b": 2, "list": [{"n": 1}], "": {"": 3}}
    for key, value in (("a.b", 2), ("a.b.c", 1), ("a", metadata["a"]), (".", 3), ("", {"": 3})):
        assert metadata_value(metadata, key) == value
    for key in ("a.c", "a.x", "a.x.y", "list.n", "b", "a."):
        assert metadata_value(metadata, key) is None


def document(**fields: Any) -> Document:
    return Document(**{"id": "1", "created_at": MARCH, "updated_at": MARCH, **fields})


@pytest.mark.parametrize(
    ("pattern", "texts", "others"),
    [
        ("a%", ["a", "ab", "a\nb"], ["", "ba", "A"]),
        ("%a", ["a", "ba"], ["ab", "a\n"]),
        ("a_c", ["abc", "a橋c", "a\nc"], ["ac", "abbc"]),
        ("%ab%ab%", ["abab", "xabyabz"], ["ab", "aba"]),
        ("a%a", ["aa", "aba"], ["a"]),
        ("\\%\\_\\\\", ["%_\\"], ["ab\\"]),
        ("\0%", ["\0", "\0a"], ["", "a"]),
        ("\\\0", ["\0"], ["", "a"]),
        (".*", [".*"], ["a"]),
    ],
)
def test_a_pattern_has_two_wildcards_and_an_escape(pattern: str, texts: list[str], others: list[str]) -> None:
    for text, expected in ((text, text in texts) for text in [*texts, *others]):
        assert selects(Comparison("title", "like", pattern), document(title=text)) is expected, text


def test_no_pattern_takes_long() -> None:
    pattern = Comparison("title", "like", "%a" * 500 + "%b")
    assert not selects(pattern, document(title="a" * 5000))


def test_a_selector_refuses_what_means_nothing_before_it_sees_a_document() -> None:
    with pytest.raises(FilterError):
        selector(Comparison("colour", "=", "red"))
    is_selected = selector(Comparison("created_at", "=", MARCH.astimezone(timezone(timedelta(hours=9)))))
    assert is_selected(document())
