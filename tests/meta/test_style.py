"""The rules of the house that no linter knows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(ROOT.glob("packages/*/src/**/*.py"))
VAGUE = {"base", "common", "helpers", "misc", "utils"}
FOLDERS = ("packages", "tests", "docs", "demo", "config-examples", "templates", "benchmarks", "changelog.d", ".ci")
TEXT = {".md", ".py", ".toml", ".yaml", ".tmpl"}
UNWANTED = re.compile(r"\.\./shared|(?<![\w.])/work/|\b(?:TODO|FIXME|XXX)\b")
LONGEST = 300


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


each_module = pytest.mark.parametrize("module", MODULES, ids=relative)


@each_module
def test_a_module_stays_short_and_begins_with_one_line_about_itself(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert text.count("\n") < LONGEST
    summary, *rest = (ast.get_docstring(ast.parse(text)) or "").split("\n")
    assert summary.endswith((".", ":"))
    assert not rest or rest[0] == ""


@each_module
def test_a_module_is_called_after_what_is_in_it(module: Path) -> None:
    assert {module.stem, module.parent.name} & VAGUE == set()


INITS = [path for path in MODULES if path.name == "__init__.py"]
# It has to tell pytest which assertions to rewrite before it imports them.
INITS_WITHOUT_LOGIC = [path for path in INITS if path.parent.name != "testing"]


@pytest.mark.parametrize("module", INITS_WITHOUT_LOGIC, ids=relative)
def test_an_init_module_holds_a_docstring_and_public_names(module: Path) -> None:
    _, *rest = ast.parse(module.read_text(encoding="utf-8")).body
    for node in rest:
        names = isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]
        assert names or isinstance(node, ast.ImportFrom)


def test_an_exempt_line_says_why() -> None:
    silent = [line for line in source_lines() if re.search(r"pragma: no (cover|branch)(?! - \w+ \w+)", line)]
    assert silent == []


def test_an_ignored_rule_is_named() -> None:
    assert [line for line in source_lines() if re.search(r"# (noqa(?!: [A-Z])|type: ignore(?!\[))", line)] == []


def test_nothing_refers_to_a_place_of_its_authors_or_to_work_left_over() -> None:
    found = [relative(path) for path in texts() if UNWANTED.search(path.read_text(encoding="utf-8", errors="replace"))]
    assert found == []


def source_lines() -> Iterator[str]:
    for module in MODULES:
        for number, line in enumerate(module.read_text(encoding="utf-8").splitlines(), 1):
            yield f"{relative(module)}:{number}: {line.strip()}"


def texts() -> Iterator[Path]:
    for folder in (ROOT / name for name in FOLDERS):
        yield from (path for path in folder.rglob("*") if path.is_file() and is_ours(path))
    yield from (path for path in ROOT.iterdir() if path.is_file() and is_ours(path))


def is_ours(path: Path) -> bool:
    if path.parent.name == ".ci":
        return True
    hidden = any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    return not hidden and path.suffix in TEXT and path != Path(__file__)
