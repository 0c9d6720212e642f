"""The configuration that `init-config` writes: every line a comment, and valid when they are taken off."""

from collections.abc import Iterable, Iterator

from haiku.rag.plugins import ConfigSectionRecord, StorageRecord
from haiku.rag.plugins.kernel import Kernel

HEAD = """\
# The configuration of haiku-rag. What is commented out shows the default, or an example; an empty file is valid.
# Texts may hold environment variables: ${NAME}, or ${NAME:-default}; $$ is a dollar sign.
# Found at --config, $HAIKU_RAG_CONFIG_PATH, ./haiku.rag.yaml, or in the data directory. See 'haiku-rag settings'.
"""
STORAGE = """
# {summary}
# Databases by name. A path is local, and relative to this file; a URI such as s3://bucket/name works where the
# engine reads it. Searching covers them all; every other command takes one, by --db-name.
#{section}:
#  databases:
#    papers: ./papers{suffix}
#    wiki: ~/wiki{suffix}
"""
CORE = """
# Which model makes vectors of texts. Without a provider, the installed one that needs no configuration serves.
#embeddings:
#  batch_size: 64

# How databases are searched and their candidates ranked.
#search:
#  limit: 5
#  fusion: calibrated         # ranks better than the default, cosine, by meaning and words together
#  timeout_s: 30
#  on_unavailable: raise      # or skip, or a list of the databases that must answer
#  weights: {papers: 1.0}     # 0 leaves a database out, 1 changes nothing
#  boosts: {wiki: 0.1}        # added last: a large one always comes first

# A reranker, off without a model; 'model: {provider: local}' needs no service and no download.
#reranking:
#  timeout_s: 30
#  required: false

# How documents are cut into passages, in the embedder's own tokens.
#processing:
#  chunk_size: 256

# Plugins that are not even imported, and those that win where two provide one name.
#plugins:
#  disabled: []
#  prefer: []
"""


def example_config(kernel: Kernel) -> str:
    """The example, with the sections of what is installed."""
    return HEAD + "".join(_storage(kernel.records(StorageRecord))) + CORE + "".join(_others(kernel))


def _storage(records: Iterable[StorageRecord]) -> Iterator[str]:
    for record in records:
        for section in record.sections:
            suffix = next(iter(record.suffixes), "")
            yield STORAGE.format(summary=record.summary, section=section, suffix=suffix)


def _others(kernel: Kernel) -> Iterator[str]:
    engines = {section for record in kernel.records(StorageRecord) for section in record.sections}
    for record in kernel.records(ConfigSectionRecord):
        if record.name not in engines:
            yield f"\n# {record.summary}\n#{record.name}:\n"
