"""What one can do here: `nox -l` lists it, `nox -s NAME` does it.

Nothing but `pip install nox` is assumed. Each session has an environment of its own. What it needs goes in with one
resolve, under a constraint that pins every local distribution to the path of the wheel just built from `packages/*`,
so that none of them can come from a package index. Adding a package is adding its folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"

ROOT = Path(__file__).parent
TOOLS = nox.project.load_toml(ROOT / "pyproject.toml")
PACKAGES = {
    nox.project.load_toml(project)["project"]["name"]: project.parent
    for project in sorted(ROOT.glob("packages/*/pyproject.toml"))
}
HEAVY = ("haiku-rag-rerank-sentence-transformers",)
"""What brings PyTorch, gigabytes on some machines: installed by the session `torch` alone."""
TORCH = "torch==2.13.0"
"""One release of it, so that every machine tests the same."""
USUAL = [name for name in PACKAGES if name not in HEAVY]
SOURCES = [str(package / "src") for package in PACKAGES.values()]
DEMO = ("haiku-rag", "--config", "demo/haiku.rag.yaml")
QUESTION = "how are results from several databases merged into one list"


@nox.session(default=False)
def demo(session: nox.Session) -> None:
    """Two databases of real text and one question: each hit says which database it is from."""
    install(session, "haiku-rag-core[default]")
    shutil.rmtree(ROOT / ".demo", ignore_errors=True)
    for database, folder in {"docs": "docs", "field-notes": "demo/field-notes"}.items():
        session.run(*DEMO, "--db-name", database, "init")
        session.run(*DEMO, "--db-name", database, "add-src", folder)
    session.run(*DEMO, "search", QUESTION, "--limit", "4")


@nox.session
def tests(session: nox.Session) -> None:
    """Every test, and every line of the packages covered. Arguments go to pytest, and switch the coverage off."""
    run_tests(session)


@nox.session(python=["3.11", "3.12", "3.13"], default=False)
def tests_all(session: nox.Session) -> None:
    """The same on each supported Python that is there."""
    run_tests(session)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff's rules, its format, and who may import whom."""
    session.install(*dependencies("lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": os.pathsep.join(SOURCES)})


@nox.session
def types(session: nox.Session) -> None:
    """mypy, strict, over the packages, their tests and the tools."""
    install(session, *USUAL, *dependencies("test", "types"))
    environment = {"MYPYPATH": os.pathsep.join([*SOURCES, "benchmarks", "tests/stress"])}
    session.run("mypy", *SOURCES, "noxfile.py", "templates", "benchmarks", "docs/conf.py", "tests", env=environment)
    for package in PACKAGES.values():  # one by one: some test folders have modules of the same name
        session.run("mypy", str(package / "tests"), env=environment)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation as HTML with every warning an error, and the tests that keep it in step with the code."""
    install(session, *USUAL, *dependencies("test", "docs"))
    pages = session.cache_dir / "docs"
    session.run("sphinx-build", "--quiet", "--fail-on-warning", "--keep-going", "docs", str(pages))
    session.run("pytest", "-q", "tests", "-k", "docs or clauses")
    session.log(f"The documentation is in {pages / 'index.html'}")


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """A wheel and a source distribution of every package, into dist/."""
    session.install(*dependencies("build"))
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    for package in PACKAGES.values():
        session.run("python", "-m", "build", "--no-isolation", "--outdir", "dist", str(package), silent=True)
    session.run("twine", "check", "--strict", *map(str, sorted(ROOT.glob("dist/*"))))


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """The benchmarks, from seeded data. Arguments go to each of them, such as `--rounds 100`."""
    install(session, *USUAL)
    for script in ("startup.py", "federated.py", "vector_index.py", "embedding.py", "reranking.py"):
        session.run("python", f"benchmarks/{script}", *session.posargs)


@nox.session(default=False)
def torch(session: nox.Session) -> None:
    """The tests of what runs on PyTorch, every line of it covered."""
    install(session, "haiku-rag-core", *HEAVY, TORCH, *dependencies("test"))
    for name in HEAVY:
        session.run(
            "pytest",
            str(PACKAGES[name] / "tests"),
            "--cov=haiku.rag.rerankers.sentence_transformers",
            "--cov-report=term-missing:skip-covered",
            env={"HF_HUB_OFFLINE": "1"},
        )


@nox.session(name="eval", default=False)
def evaluation(session: nox.Session) -> None:
    """How well judged collections rank, with the bars: `nox -s eval -- FOLDER`, a folder of BEIR folders."""
    install(session, *USUAL)
    session.run("python", "benchmarks/ranking.py", *session.posargs)


@nox.session(default=False)
def stress(session: nox.Session) -> None:
    """The tests that run many processes or many rounds, with ten times the rounds."""
    install(session, *USUAL, *dependencies("test"))
    session.run("pytest", "-m", "stress", *session.posargs, env={"HAIKU_RAG_STRESS": "10"})


@nox.session(default=False, venv_backend="none")
def new_plugin(session: nox.Session) -> None:
    """Four files to begin a plugin with: `nox -s new_plugin -- reranker acme`."""
    session.run("python3", "templates/new_plugin.py", *session.posargs)


def run_tests(session: nox.Session) -> None:
    """Run pytest; without arguments over everything, with the coverage of what is installed, which has to be whole."""
    wheels = install(session, *USUAL, *dependencies("test"))
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    installed = Path(str(session.run("python", "-c", where, silent=True)).strip()) / "haiku"
    chosen = session.posargs or [
        "-n",
        "2",
        "--dist",
        "worksteal",
        f"--cov={installed}",
        "--cov-report=term-missing:skip-covered",
    ]
    session.run("pytest", *chosen, env={"HAIKU_RAG_WHEELS": str(wheels)})


def dependencies(*groups: str) -> tuple[str, ...]:
    """The requirements of dependency groups of the root `pyproject.toml`."""
    return nox.project.dependency_groups(TOOLS, *groups)


def install(session: nox.Session, *requirements: str) -> Path:
    """Install requirements, ours from their wheels, unless just these are there; the folder of the wheels."""
    # Nothing is compiled when it is installed: each module is when it is first imported, and kept.
    session.env["PYTHONDONTWRITEBYTECODE"] = ""
    wheels = local_wheels(session)
    state = "\n".join([wheels.name, *requirements])
    stamp = Path(session.virtualenv.location, "installed.txt")
    if stamp.is_file() and stamp.read_text() == state:
        return wheels
    session.log(f"installing {', '.join(requirements)}")
    if stamp.is_file():
        stamp.unlink()
        session.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", *PACKAGES, silent=True, log=False)
    session.install("--no-compile", "--constraint", str(wheels / "local.txt"), *requirements, log=False)
    stamp.write_text(state)
    return wheels


def local_wheels(session: nox.Session) -> Path:
    """A folder with a wheel of each package as it now is, and `local.txt`, which pins each to its path."""
    folder = session.cache_dir.absolute() / "wheels" / fingerprint()
    if folder.is_dir():
        return folder
    session.log(f"building wheels of {', '.join(PACKAGES)}")
    shutil.rmtree(folder.parent, ignore_errors=True)
    building = folder.with_suffix(".building")
    session.install("hatchling", log=False)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(building))
    session.run("python", "-m", "pip", "wheel", *options, *map(str, PACKAGES.values()), silent=True, log=False)
    built = {name: next(building.glob(f"{name.replace('-', '_')}-*.whl")).name for name in PACKAGES}
    (building / "local.txt").write_text("\n".join(f"{name} @ {(folder / built[name]).as_uri()}" for name in built))
    return building.rename(folder)


def fingerprint() -> str:
    """A digest of everything that goes into the wheels."""
    digest = hashlib.sha256()
    for package in PACKAGES.values():
        files = [path for path in package.glob("src/**/*") if path.is_file() and path.suffix != ".pyc"]
        for path in sorted([*files, package / "pyproject.toml", package / "README.md"]):
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
