"""Whether vectors are comparable: a database with the configuration, and databases with each other."""

import logging
from collections.abc import Sequence

from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.errors import ConfigMismatchError
from haiku.rag.models import EmbeddingIdentity

logger = logging.getLogger(__name__)


def check_identity(
    recorded: EmbeddingIdentity | None,
    configured: EmbeddingIdentity | None,
    ref: DatabaseRef,
    *,
    writable: bool,
    mixed: bool = False,
) -> None:
    """Compare a database's embedding with the configured one when it opens.

    Another dimension is a `ConfigMismatchError`; so is another provider, model or document prefix where the database
    is to be written. Where it is only read, that is a warning, and with `mixed` embeddings nothing is wrong.
    """
    if recorded is None or configured is None or recorded == configured or (mixed and not writable):
        return
    reading = ", or open it for reading only" if mixed else ""
    text = (
        f"database '{ref.name}' was written with {recorded.describe()}, and the configuration says "
        f"{configured.describe()}. Set embeddings.model to what it was written with{reading}."
    )
    if writable or recorded.dimension != configured.dimension:
        raise ConfigMismatchError(text, source=ref.name)
    logger.warning("%s", text)


def check_comparable(identities: Sequence[tuple[DatabaseRef, EmbeddingIdentity | None]]) -> None:
    """Compare the databases of one vector or hybrid search; `ConfigMismatchError` names two that differ, and how."""
    known = [(ref, identity) for ref, identity in identities if identity is not None]
    for ref, identity in known[1:]:
        first, reference = known[0]
        if identity != reference:
            raise ConfigMismatchError(
                f"databases '{first.name}' and '{ref.name}' cannot be searched together by vector: '{first.name}' was "
                f"written with {reference.describe()}, '{ref.name}' with {identity.describe()}. "
                "Search them apart, by full text, or each with its own model (search.mixed_embedders: allow)."
            )
