"""The records of the embedders that run in process."""

from collections.abc import Iterable

from haiku.rag.plugins import EmbedderRecord, hookimpl


@hookimpl
def haiku_rag_register_embedder() -> Iterable[EmbedderRecord]:
    """`local`, which works without configuration, and `onnx`, which is given a folder."""
    yield EmbedderRecord(
        name="local",
        summary="all-MiniLM-L6-v2 (English, 384 dimensions), installed with the package; no service, no download.",
        factory="haiku.rag.embedders.local.embedder:create_local",
        extra="embed-local",
        needs="onnxruntime",
        standalone=True,
    )
    yield EmbedderRecord(
        name="onnx",
        summary="A text encoder in ONNX format, read from the folder that embeddings.model.name gives.",
        factory="haiku.rag.embedders.local.onnx:create_onnx",
        extra="embed-local",
        needs="onnxruntime",
    )
