"""The examples of the documentation and of public docstrings run as they are written."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from haiku.rag.config import load_config

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
SOURCES = sorted(ROOT.glob("packages/*/src/**/*.py"))
BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<code>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE)
WHOLE_PAGES = ("client.md", "configuration.md")

pytestmark = pytest.mark.anyio


def blocks(text: str, language: str) -> list[tuple[int, str]]:
    """The line number and the code of each block of a language."""
    return [
        (text.count("\n", 0, found.start("code")), dedent(found["code"]))
        for found in BLOCK.finditer(text)
        if found["language"] == language
    ]


async def run(code: str, names: dict[str, Any], *, where: str, line: int) -> None:
    """Execute code that may await at its top level; a failure shows the line of the page."""
    tree = ast.increment_lineno(ast.parse(code, filename=where), line)
    compiled = compile(tree, where, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(compiled, names)
    if inspect.iscoroutine(result):
        await result


@pytest.mark.parametrize("name", WHOLE_PAGES)
async def test_the_python_blocks_of_a_page_run_one_after_the_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / name
    found = blocks(page.read_text(encoding="utf-8"), "python")
    assert found
    names: dict[str, Any] = {"folder": tmp_path}
    for line, code in found:
        await run(code, names, where=str(page), line=line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_of_the_documentation_is_python(page: Path) -> None:
    for line, code in blocks(page.read_text(encoding="utf-8"), "python"):
        compile(code, f"{page.name}:{line + 1}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_yaml_block_of_the_documentation_is_a_valid_configuration(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line, code in blocks(page.read_text(encoding="utf-8"), "yaml"):
        for name in re.findall(r"\$\{(\w+)\}", code):
            monkeypatch.setenv(name, "x")
        file = tmp_path / f"line-{line + 1}.yaml"
        file.write_text(code, encoding="utf-8")
        config = load_config(file)
        sections = {*config.section_names, *config.inert_sections}  # what brings PyTorch is not installed here
        assert set(yaml.safe_load(code)) == config.model_fields_set | sections, file.name


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """The qualified place and the text of every docstring of a module."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        text = ast.get_docstring(node) if isinstance(node, kinds) else None
        if text:
            yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", text


async def test_the_examples_in_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser = doctest.DocTestParser()
    for path in SOURCES:
        for where, text in docstrings(path):
            for line, code in blocks(text, "python"):
                await run(code, {"folder": tmp_path}, where=where, line=line)
            example = parser.get_doctest(text, {}, where, str(path), 0)
            assert not doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example).failed
