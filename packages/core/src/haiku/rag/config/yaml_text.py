"""From YAML to plain data, without what YAML lets one hide: repeated keys, and values that hold themselves."""

from collections.abc import Mapping
from typing import Any

import yaml

from haiku.rag.errors import ConfigError

MERGE = "tag:yaml.org,2002:merge"
MAX_VALUES = 100_000
"""More values than this, with every alias written out, and the text is refused: a few lines can make billions."""


def parsed_yaml(data: bytes, name: str) -> Any:
    """The text's value. `ConfigError`, with the file's `name` and the place, and without any of its words."""
    try:
        value = yaml.load(data, _Loader)  # noqa: S506 - the loader derives from the safe one
        count = _size(value, {})
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # such as a date that does not exist
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        why = f": {error.problem}" if isinstance(error, _RepeatedKeyError) else ""
        raise ConfigError(f"{name} is not valid YAML{where}{why}.") from None
    if count > MAX_VALUES:
        raise ConfigError(f"{name} holds more than {MAX_VALUES:,} values, or its aliases make as many.")
    return value


class _RepeatedKeyError(yaml.MarkedYAMLError):
    """A key stands twice in one mapping."""


class _Loader(yaml.SafeLoader):
    """The safe loader, which by itself would let the last of several equal keys win."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Looks at the keys as they are written: later on, merged ones stand beside those that override them."""
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
                continue
            if (key.tag, key.value) in seen:
                raise _RepeatedKeyError(problem="a key is given twice", problem_mark=key.start_mark)
            seen.add((key.tag, key.value))
        return node


def _size(value: Any, known: dict[int, int]) -> int:
    """How many values there are with every alias written out; one that holds itself is refused."""
    if not isinstance(value, Mapping | list):
        return 1
    if id(value) not in known:
        known[id(value)] = MAX_VALUES + 1  # what it counts for inside of itself
        inner = value.values() if isinstance(value, Mapping) else value
        known[id(value)] = 1 + sum(_size(item, known) for item in inner)
    return known[id(value)]
