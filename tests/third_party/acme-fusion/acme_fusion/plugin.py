"""What acme-fusion registers."""

from collections.abc import Iterable

from haiku.rag.plugins import FusionRecord, hookimpl


@hookimpl
def haiku_rag_register_fusion() -> Iterable[FusionRecord]:
    """The strategy `acme-sum`."""
    yield FusionRecord(
        name="acme-sum", summary="Cosine, and a little for words found", factory="acme_fusion.fusion:SumFusion"
    )
