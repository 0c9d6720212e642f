"""What the tests that cross packages share."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel of every package: the session's, where nox has built them, else new ones."""
    given = os.environ.get("HAIKU_RAG_WHEELS")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("wheels")
    build_wheels(folder, *(project.parent for project in sorted(ROOT.glob("packages/*/pyproject.toml"))))
    return folder


@pytest.fixture(scope="session")
def build_wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Builds the wheel of a project, and says where it is."""

    def build(project: Path) -> Path:
        folder = tmp_path_factory.mktemp("wheel")
        build_wheels(folder, project)
        return next(folder.glob("*.whl"))

    return build


def build_wheels(folder: Path, *projects: Path) -> None:
    """Build wheels of local projects, fetching nothing."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, *map(str, projects)], check=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have measured."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties if report.when == "call" else ():
            terminalreporter.write_line(f"{name}: {value}")
