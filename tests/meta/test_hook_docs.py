"""`docs/hooks.md` has a heading for each hook, with its exact signature, and each hook has a test named after it."""

import ast
import re
from pathlib import Path

import haiku.rag.plugins.hookspecs as specifications

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^#+ `(haiku_rag_\w+\(.*)`$", re.MULTILINE)
TEST = re.compile(r"^(?:async )?def test_(haiku_rag_\w+)", re.MULTILINE)


def signatures() -> dict[str, str]:
    """Each hook with its signature, from the source of the specifications."""
    tree = ast.parse(Path(specifications.__file__).read_text(encoding="utf-8"))
    hooks = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {
        hook.name: f"{hook.name}({ast.unparse(hook.args)}) -> {ast.unparse(hook.returns)}"
        for hook in hooks
        if hook.returns is not None
    }


def test_the_documented_signatures_are_those_of_the_specifications() -> None:
    headings = HEADING.findall((ROOT / "docs/hooks.md").read_text(encoding="utf-8"))
    assert sorted(headings) == sorted(signatures().values())


def test_every_hook_has_a_test_named_after_it() -> None:
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("packages/*/tests/**/test_*.py")]
    names = [name for file in files for name in TEST.findall(file.read_text(encoding="utf-8"))]
    assert [hook for hook in signatures() if not any(name.startswith(hook) for name in names)] == []
