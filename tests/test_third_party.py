"""Plugins from outside, installed from wheels: they take part like core's own, and a bad one costs itself only.

Each program under `third_party/programs` runs in a process of its own, with the installed distributions and nothing
of this repository but core's wheel before it on the path. First-party plugins other than core's are switched off, so
that the sentences compared here name strangers only.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent / "third_party"
PROJECTS = sorted(HERE.glob("acme-*"))
VARIABLE = "HAIKU_RAG_DISABLE_PLUGINS"
OURS = sorted({entry.dist.name for entry in entry_points(group="haiku_rag") if entry.dist} - {"haiku-rag-core"})
BROKEN = {
    "acme_async": (
        "plugin 'acme_async' (acme-async 1.0) was not loaded: ValueError: 'haiku_rag_register_reranker' is "
        "asynchronous, and must not be. Details: haiku-rag plugins check acme_async."
    ),
    "acme_broken_import": (
        "plugin 'acme_broken_import' (acme-broken-import 1.0) was not loaded: ModuleNotFoundError: "
        "No module named 'acme_library_that_nobody_has'. Details: haiku-rag plugins check acme_broken_import."
    ),
    "acme_exits": (
        "plugin 'acme_exits' (acme-exits 1.0) was not loaded: SystemExit: the licence has run out. "
        "Details: haiku-rag plugins check acme_exits."
    ),
    "acme_typo": (
        "plugin 'acme_typo' (acme-typo 1.0) was not loaded: ValueError: there is no hook "
        "'haiku_rag_register_rerankr'. Did you mean 'haiku_rag_register_reranker'? "
        "Details: haiku-rag plugins check acme_typo."
    ),
}
SOUND = {
    "acme_command": ("acme-command", "0.3", ["command acme-greet"]),
    "acme_conflict": ("acme-conflict", "3.0", ["reranker acme"]),
    "acme_decider": ("acme-decider", "1.0", ["config_section acme_decider"]),
    "acme_errors": ("acme-errors", "2.1", ["command acme-spend", "error acme-quota"]),
    "acme_fusion": ("acme-fusion", "0.9", ["fusion acme-sum"]),
    "acme_rerank": ("acme-rerank", "1.2", ["reranker acme"]),
    "acme_sqlstore": ("acme-sqlstore", "1.4", ["config_section acme_sql", "storage acme-sql"]),
    "acme_witness": ("acme-witness", "1.0", []),
}
CONFLICT = (
    "PluginConflictError: reranker 'acme' is provided by two plugins: acme-conflict 3.0 (acme_conflict.plugin) and "
    "acme-rerank 1.2 (acme_rerank.plugin). Uninstall one, set plugins.disabled, or set plugins.prefer."
)

pytestmark = pytest.mark.packaging
Run = Callable[..., str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """A folder into which core's wheel and those of the strangers are installed, from files alone."""
    built, folder = tmp_path_factory.mktemp("strangers"), tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip"]
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(built)]
    subprocess.run([*pip, *build, *map(str, PROJECTS)], check=True)
    install = ["install", "--quiet", "--no-index", "--no-deps", "--target", str(folder)]
    subprocess.run([*pip, *install, *wheels.glob("haiku_rag_core-*.whl"), *built.glob("*.whl")], check=True)
    return folder


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Run:
    """Runs Python in the environment of the installed distributions; gives what it printed."""

    def run(*arguments: object, env: Mapping[str, str] | None = None, status: int = 0) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "HAIKU_RAG"))}
        given = {**kept, "PYTHONPATH": str(site), VARIABLE: ",".join(OURS), **(env or {})}
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=given, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def listed(run: Run, config: Mapping[str, Any] | None = None, **env: str) -> dict[str, dict[str, Any]]:
    plugins: dict[str, dict[str, Any]] = json.loads(
        run(HERE / "programs/plugins.py", json.dumps(config or {}), env=env)
    )
    return {name: plugin for name, plugin in plugins.items() if plugin["distribution"] not in OURS}


def find(run: Run, kind: str, name: str, config: Mapping[str, Any] | None = None, off: str = "") -> str:
    program = HERE / "programs/find.py"
    return run(program, json.dumps(config or {}), kind, name, env={VARIABLE: ",".join([*OURS, off])}).strip()


def test_installed_plugins_are_found_with_their_distributions_and_records(run: Run) -> None:
    plugins = listed(run)
    assert plugins.keys() == {*SOUND, *BROKEN, "core"}
    for name, (distribution, version, records) in SOUND.items():
        assert plugins[name] == {
            "distribution": distribution,
            "version": version,
            "module": f"{name}.plugin",
            "status": "loaded",
            "sentence": "",
            "records": records,
        }


@pytest.mark.parametrize("project", ["acme-sqlstore", "acme-rerank", "acme-fusion"])
def test_a_strangers_plugin_passes_its_contract_where_it_is_installed(run: Run, tmp_path: Path, project: str) -> None:
    tests = shutil.copytree(HERE / project / "tests", tmp_path / "tests")
    outside = ["-c", os.devnull, "--rootdir", tmp_path, "--import-mode=importlib", "-p", "no:cacheprovider"]
    assert " passed" in run("-m", "pytest", "-q", *outside, tests)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_listed_with_the_reason_and_costs_nothing_else(run: Run, name: str) -> None:
    plugins = listed(run)
    assert plugins[name]["status"] == "failed"
    assert plugins[name]["sentence"] == BROKEN[name]
    assert plugins[name]["records"] == []
    assert {plugin["status"] for other, plugin in plugins.items() if other not in BROKEN} == {"loaded"}


def test_R11_an_engine_that_searches_many_is_asked_once(run: Run, tmp_path: Path) -> None:
    for search_type in ("vector", "hybrid"):
        folder = tmp_path / search_type
        folder.mkdir()
        output = run(HERE / "programs/search.py", folder, search_type)
        assert output.splitlines()[0] == "witnessed 'stone bridge' over ['bridges', 'bread', 'sky']"
        found = json.loads(output.splitlines()[1])
        assert found["calls"] == {"search_many": 1, "statements": 1}
        assert found["fusion"] == "acme-sum"
        assert found["hits"][0] == ["bridges", "The stone bridge was rebuilt in 1926."]
        assert {source for source, _ in found["hits"]} == {"bridges", "bread", "sky"}


def test_a_plan_from_a_plugin_is_followed(run: Run, tmp_path: Path) -> None:
    found = json.loads(run(HERE / "programs/search.py", tmp_path, "fts").splitlines()[1])
    assert found["calls"]["search"] == 3
    assert {source for source, _ in found["hits"]} == {"bridges", "sky"}


def test_a_plugin_can_say_where_databases_are_and_what_a_failure_means(run: Run, tmp_path: Path) -> None:
    found = json.loads(run(HERE / "programs/tenants.py", tmp_path).splitlines()[-1])
    assert found == {
        "sources": ["tenant-7"],
        "problem": {
            "type": "SourceUnavailableError",
            "text": "database 'tenant-7' is damaged. Fetch last night's copy.",
            "chain": [None, None],
        },
        "configured": ["bridges", "bread", "sky"],
    }


@pytest.mark.parametrize(
    ("config", "env"),
    [
        ({"plugins": {"disabled": ["acme_witness"]}}, {}),
        ({"plugins": {"disabled": ["acme-witness"]}}, {}),
        ({}, {VARIABLE: ",".join([*OURS, "Acme.Witness"])}),
        ({}, {"HAIKU_RAG_NO_PLUGINS": "1"}),
    ],
    ids=["disabled by name", "disabled by distribution", "by variable", "no plugins"],
)
def test_a_plugin_that_is_switched_off_is_not_even_imported(
    run: Run, tmp_path: Path, config: dict[str, Any], env: dict[str, str]
) -> None:
    mark = tmp_path / "imported"
    assert listed(run, ACME_WITNESS=str(mark))["acme_witness"]["status"] == "loaded"
    assert mark.exists()
    mark.unlink()
    plugins = listed(run, config, ACME_WITNESS=str(mark), **env)
    assert plugins["acme_witness"]["status"] == "disabled"
    assert not mark.exists()
    assert plugins["core"]["status"] == "loaded"


def test_without_plugins_every_stranger_is_off_and_core_works(run: Run) -> None:
    plugins = listed(run, HAIKU_RAG_NO_PLUGINS="1")
    assert {plugin["status"] for name, plugin in plugins.items() if name != "core"} == {"disabled"}
    assert plugins["acme_rerank"]["sentence"] == (
        "plugin 'acme_rerank' (acme-rerank 1.2) was not loaded: third-party plugins are off. "
        "Details: haiku-rag plugins check acme_rerank."
    )
    assert plugins["core"]["status"] == "loaded"


def test_two_providers_of_one_name_are_a_conflict_that_names_both(run: Run) -> None:
    assert find(run, "reranker", "acme") == CONFLICT


@pytest.mark.parametrize(
    ("plugins", "chosen"),
    [
        ({"prefer": ["acme-rerank"]}, "AcmeReranker"),
        ({"prefer": ["acme_conflict"]}, "BackwardsReranker"),
        ({"disabled": ["acme-conflict"]}, "AcmeReranker"),
        ({"prefer": ["acme-rerank", "acme-conflict"]}, CONFLICT),
    ],
)
def test_a_conflict_is_settled_by_preferring_or_disabling_one(
    run: Run, plugins: dict[str, list[str]], chosen: str
) -> None:
    assert find(run, "reranker", "acme", {"plugins": plugins}) == chosen


def test_a_name_that_is_not_known_is_answered_with_the_nearest(run: Run) -> None:
    assert find(run, "fusion", "acme-some", off=",".join(BROKEN)) == (
        "UnknownPluginError: no fusion 'acme-some'. Known: acme-sum, calibrated, cosine, rrf, weighted. "
        "Did you mean 'acme-sum'?"
    )


def test_a_name_that_a_broken_plugin_may_have_meant_to_provide_is_answered_with_its_reason(run: Run) -> None:
    off = ",".join(set(BROKEN) - {"acme_broken_import"})
    sentence = BROKEN["acme_broken_import"]
    assert find(run, "storage", "zeppelin", off=off) == (
        "PluginNotLoadedError: no storage 'zeppelin'. Known: acme-sql. P" + sentence[1:]
    )


def test_a_strangers_error_ends_the_command_line_with_its_own_status(run: Run) -> None:
    assert find(run, "error", "acme-quota") == "QuotaError"
    output = run("-m", "haiku.rag.cli", "acme-spend", status=75)
    assert output.splitlines()[-1] == "Error: the quota is used up. Ask for more."


def test_a_strangers_command_is_listed_and_run(run: Run) -> None:
    assert "Greet somebody" in run("-m", "haiku.rag.cli", "--help")
    assert run("-m", "haiku.rag.cli", "acme-greet", "Ada").splitlines()[-1] == "Good day, Ada."
