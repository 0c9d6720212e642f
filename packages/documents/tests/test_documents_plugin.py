"""The records of the package."""

import importlib
import subprocess
import sys

from haiku.rag.config import AppConfig
from haiku.rag.converters.documents import plugin

LIGHT = """
import sys
import haiku.rag.converters.documents.plugin
heavy = {"httpx", "selectolax", "markdown_it", "pypdfium2", "charset_normalizer", "pydantic", "numpy", "pyarrow"}
print(sorted(heavy & set(sys.modules)))
"""


def records():
    return [
        *plugin.haiku_rag_register_converter(),
        *plugin.haiku_rag_register_chunker(),
        *plugin.haiku_rag_register_source(),
    ]


def test_importing_the_plugin_imports_no_library():
    run = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_every_factory_makes_its_object_from_the_configuration():
    config = AppConfig()
    made = {}
    for record in records():
        module, _, name = record.factory.partition(":")
        made[record.name] = type(getattr(importlib.import_module(module), name)(config)).__name__
    assert made == {
        "text": "TextConverter",
        "markdown": "MarkdownConverter",
        "html": "HtmlConverter",
        "pdf": "PdfConverter",
        "structural": "StructuralChunker",
        "http": "HttpSource",
    }


def test_no_two_converters_claim_a_suffix_or_a_media_type():
    converters = list(plugin.haiku_rag_register_converter())
    for claims in ([record.suffixes for record in converters], [record.media_types for record in converters]):
        assert sum(map(len, claims)) == len(frozenset().union(*claims))


def test_suffixes_are_lower_case_and_begin_with_a_dot():
    for record in plugin.haiku_rag_register_converter():
        assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in record.suffixes)


def test_the_chunker_serves_without_being_configured():
    assert [record.standalone for record in plugin.haiku_rag_register_chunker()] == [True]
