"""What `nox -s new_plugin` writes is a plugin that can be built, installed, loaded, and that keeps its contract."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "templates" / "new_plugin.py"
KINDS = sorted(path.name.removesuffix(".py.tmpl") for path in SCRIPT.parent.glob("plugin/kinds/*"))


def run(
    arguments: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, check=False)


@pytest.mark.packaging
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plugin_can_be_installed_and_keeps_its_contract(
    kind: str, tmp_path: Path, build_wheel: Callable[[Path], Path]
) -> None:
    project, site = tmp_path / "acme", tmp_path / "site"
    run([SCRIPT, kind, "acme", project]).check_returncode()
    written = [path.name for path in project.rglob("*") if path.is_file()]
    assert sorted(written) == sorted(["plugin.py", f"{kind}.py", "pyproject.toml", "test_contract.py"])

    run(["-m", "pip", "install", "--quiet", "--no-deps", "--target", site, build_wheel(project)]).check_returncode()
    environment = {**os.environ, "PYTHONPATH": str(site)}
    suite = run(["-m", "pytest", "-q", "tests"], cwd=project, env=environment)
    assert suite.returncode == 0, suite.stdout
    assert "passed" in suite.stdout
    check = run(["-m", "haiku.rag.cli", "plugins", "check", "acme"], cwd=tmp_path, env=environment)
    assert check.returncode == 0, check.stdout + check.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "usage: nox -s new_plugin"),
        (["telescope", "acme"], "no template for the kind 'telescope'"),
        (["reranker", "Acme Inc"], "'Acme Inc' cannot be a plugin's name"),
        (["reranker", "acme", "."], "'.' is there already"),
    ],
)
def test_what_cannot_be_written_is_refused_with_a_sentence(
    arguments: list[str], complaint: str, tmp_path: Path
) -> None:
    done = run([SCRIPT, *arguments], cwd=tmp_path)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert list(tmp_path.iterdir()) == []
