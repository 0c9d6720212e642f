"""YAML that hides something: repeated keys, values inside of themselves, a few lines that stand for billions."""

import pytest

from haiku.rag.config.yaml_text import parsed_yaml
from haiku.rag.errors import ConfigError

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("search: {limit: 1}\nsearch: {limit: 2}\n", "line 2, column 1"),
        ("lancedb:\n  databases:\n    a: /secret/one\n    a: /secret/two\n", "line 4, column 5"),
        ("a: 1\n'a': 2\n", "line 2, column 1"),
    ],
)
def test_a_key_that_is_given_twice_is_refused_with_its_place_and_without_its_words(text: str, place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed_yaml(text.encode(), "given.yaml")
    assert str(caught.value) == f"given.yaml is not valid YAML at {place}: a key is given twice."
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)


def test_equal_keys_of_different_kinds_or_mappings_stand_beside_each_other() -> None:
    assert parsed_yaml(b"{1: a, '1': b, x: {1: c}}", "f") == {
        1: "a",
        "1": "b",
        "x": {1: "c"},
    }


def test_a_merged_mapping_may_be_overridden_also_where_it_is_merged_again() -> None:
    text = b"a: &a {x: 1, y: 1}\nouter: {c: &c {<<: *a, x: 3}}\nd: {<<: *c, y: 4}\n"
    parsed = parsed_yaml(text, "f")
    assert (parsed["outer"]["c"]["y"], parsed["d"]["y"]) == (1, 4)


@pytest.mark.parametrize("text", ["a: &a [*a]\n", "search: &a {x: *a}\n", BOMB])
def test_aliases_that_make_more_than_anybody_means_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"given\.yaml holds more than 100,000 values"):
        parsed_yaml(text.encode(), "given.yaml")


@pytest.mark.parametrize("text", ["[" * 5000 + "]" * 5000, "a: 2001-99-99", "a: \x00"])
def test_what_the_parser_itself_breaks_on_is_not_valid(text: str) -> None:
    with pytest.raises(ConfigError, match=r"given\.yaml is not valid YAML"):
        parsed_yaml(text.encode(), "given.yaml")
