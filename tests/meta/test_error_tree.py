"""The tree of errors is drawn twice, in its module and on its page, and both drawings are the tree."""

import inspect
import re
from pathlib import Path

import pytest

from haiku.rag import errors
from haiku.rag.errors import HaikuRagError, tree

PAGE = Path(__file__).parents[2] / "docs/errors.md"
BRANCH = re.compile(r"^(?P<stem>[│ ]*)[├└]── (?P<name>\w+)", re.MULTILINE)
STEP = 4


def drawn(text: str) -> dict[str, str]:
    """Each drawn error with the one it hangs from."""
    path = [HaikuRagError.__name__]
    parents = {}
    branches = list(BRANCH.finditer(text))
    for branch in branches:
        depth = (len(branch["stem"]) - len(branches[0]["stem"])) // STEP
        del path[depth + 1 :]
        parents[branch["name"]] = path[-1]
        path.append(branch["name"])
    return parents


def derived() -> dict[str, str]:
    """Each public error with the one that it derives from."""
    classes = [getattr(errors, name) for name in errors.__all__]
    return {error.__name__: error.__base__.__name__ for error in classes if error is not HaikuRagError}


@pytest.mark.parametrize("text", [inspect.getdoc(tree) or "", PAGE.read_text(encoding="utf-8")], ids=["module", "page"])
def test_the_drawn_tree_of_errors_is_the_real_one(text: str) -> None:
    assert drawn(text) == derived()


def test_every_error_of_the_tree_is_public() -> None:
    written = {name for name, value in vars(tree).items() if inspect.isclass(value) and issubclass(value, Exception)}
    assert written == set(errors.__all__)
