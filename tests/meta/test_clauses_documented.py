"""`docs/federation.md` and the tests are in step: each clause has a test that carries its number, and the reverse."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLAUSE = re.compile(r"^- \*\*([A-Z]\d+)\*\* ", re.MULTILINE)
NUMBERED = re.compile(r"test_([A-Z]\d+)_")


def documented() -> list[str]:
    return CLAUSE.findall((ROOT / "docs/federation.md").read_text(encoding="utf-8"))


def tested() -> set[str]:
    modules = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("packages/*/tests/**/test_*.py")]
    names = [
        node.name
        for module in modules
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {match[1] for name in names if (match := NUMBERED.match(name))}


def test_every_clause_is_written_once() -> None:
    clauses = documented()
    assert len(clauses) > 40
    assert sorted(set(clauses)) == sorted(clauses)


def test_every_clause_has_a_test_that_carries_its_number() -> None:
    assert sorted(set(documented()) - tested()) == []


def test_every_numbered_test_has_a_clause() -> None:
    assert sorted(tested() - set(documented())) == []
