"""The wheels: what is in them, and that they install from their files into fresh environments and work there."""

import json
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
PROJECTS = [
    tomllib.loads(project.read_text("utf-8"))["project"] for project in sorted(ROOT.glob("packages/*/pyproject.toml"))
]
NAMES = [project["name"] for project in PROJECTS]
HEAVY = ("haiku-rag-rerank-sentence-transformers",)  # brings PyTorch: `nox -s torch` installs it
CORE = "haiku-rag-core"
DEFAULT_SET = (
    "haiku-rag-lancedb",
    "haiku-rag-embed-local",
    "haiku-rag-documents",
    "haiku-rag-cli",
    "haiku-rag-rerank-local",
)
LARGEST_MB = 750
LOAD = """
from haiku.rag.plugins.kernel import load_kernel
kernel = load_kernel()
for plugin in kernel.plugins:
    assert plugin.status == "loaded", plugin.reason
    for record in plugin.records:
        kernel.resolve(record.kind, record.name)
print(*(plugin.distribution for plugin in kernel.plugins))
"""

pytestmark = pytest.mark.packaging
each_package = pytest.mark.parametrize("name", NAMES)


def wheel_of(name: str, wheels: Path) -> Path:
    return next(wheels.glob(f"{name.replace('-', '_')}-*.whl"))


def needed_by(name: str) -> set[str]:
    """The distribution, core, and what else of ours it depends on."""
    found = {name, CORE}
    for project in PROJECTS:
        if project["name"] == name:
            ours = (re.match(r"haiku-rag-[\w-]+", requirement) for requirement in project.get("dependencies", ()))
            found |= {each for match in ours if match for each in needed_by(match[0])}
    return found


def metadata_of(wheel: Path) -> dict[str, str]:
    with ZipFile(wheel) as archive:
        (path,) = [path for path in archive.namelist() if path.endswith(".dist-info/METADATA")]
        return dict(HeaderParser().parsestr(archive.read(path).decode()))


class Environment:
    """A fresh environment that holds nothing but what is installed into it, not even pip."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder)
        self.folder = folder

    def run(self, program: str, *arguments: str) -> str:
        command = [str(self.folder / "bin" / program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, *requirements: str | Path) -> None:
        options = ["--python", str(self.folder), "install", "--quiet", "--no-compile"]
        subprocess.run([sys.executable, "-m", "pip", *options, *map(str, requirements)], check=True)

    def ours(self) -> dict[str, str]:
        """Each distribution of ours, and the address that it was installed from."""
        records = self.folder.glob("lib/python*/site-packages/haiku_rag_*.dist-info/direct_url.json")
        return {
            path.parent.name.partition("-")[0].replace("_", "-"): json.loads(path.read_text())["url"]
            for path in records
        }

    def megabytes(self) -> float:
        return sum(path.lstat().st_size for path in self.folder.rglob("*")) / 1e6


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")


def test_the_default_set_installs_from_its_wheels_and_every_plugin_loads(
    environment: Environment, wheels: Path, record_property: Callable[[str, object], None]
) -> None:
    environment.install(f"{wheel_of(CORE, wheels)}[default]", *(wheel_of(name, wheels) for name in DEFAULT_SET))
    size = environment.megabytes()
    record_property("the default set installs in", f"{size:.0f} MB")
    assert size <= LARGEST_MB
    assert environment.ours() == {name: wheel_of(name, wheels).as_uri() for name in (CORE, *DEFAULT_SET)}
    version = metadata_of(wheel_of(CORE, wheels))["Version"]
    assert version in environment.run("haiku-rag", "--version")
    listed = environment.run("haiku-rag", "plugins", "list", "--json")
    plugins = json.loads(listed)["results"]
    assert {plugin["distribution"] for plugin in plugins} == {CORE, *DEFAULT_SET}
    assert {plugin["status"] for plugin in plugins} == {"loaded"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in HEAVY])
def test_a_package_installs_beside_core_alone_and_all_that_it_offers_can_be_imported(
    name: str, environment: Environment, wheels: Path
) -> None:
    wanted = needed_by(name)
    environment.install(*(wheel_of(each, wheels) for each in sorted(wanted)))
    assert set(environment.ours()) == wanted
    assert set(environment.run("python", "-c", LOAD).split()) == wanted


@each_package
def test_a_wheel_leaves_the_namespace_open_and_marks_each_leaf_as_typed(name: str, wheels: Path) -> None:
    with ZipFile(wheel_of(name, wheels)) as archive:
        files = [Path(path) for path in archive.namelist() if path.startswith("haiku/")]
    packages = {path.parent for path in files if path.name == "__init__.py"}
    leaves = {package for package in packages if package.parent not in packages}
    assert {path.parent for path in files if path.name == "py.typed"} == leaves
    for namespace in ("", "/rag", "/rag/storage", "/rag/embedders", "/rag/converters", "/rag/rerankers"):
        assert Path(f"haiku{namespace}/__init__.py") not in files


@each_package
def test_a_wheel_says_its_licence_and_carries_the_version_of_core(name: str, wheels: Path) -> None:
    metadata = metadata_of(wheel_of(name, wheels))
    assert metadata["License-Expression"].split(" AND ")[0] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Version"] == metadata_of(wheel_of(CORE, wheels))["Version"]
