"""The vector index: of which kind, from what size on, and how it is asked."""

from typing import Any

from haiku.rag.storage.lancedb.schema import METRIC

VECTOR_INDEX = "vector_idx"
VECTOR_COLUMN = "vector"

WORTHWHILE_BYTES = 32 << 20
"""From so many bytes of vectors on a scan takes longer than a user notices, and an index is built without being asked.

21,845 vectors of 384 dimensions.
"""
ROWS_A_PARTITION = 1 << 14
EVERY_PARTITION = 1 << 16
"""More partitions than any index has: all are looked into."""
REFINED = 4
"""So many times the rows asked for are taken from the index, and ranked by their true distances."""
MOST_PARTS = 6


def is_worthwhile(rows: int, dimension: int) -> bool:
    """Whether a database gains from a vector index."""
    return rows * dimension * 4 >= WORTHWHILE_BYTES


def tuned(request: Any) -> Any:
    """A vector query of the engine, with the distance and the effort that keep recall, with an index or without.

    Partitions are never left out: vectors without clusters have their neighbours in any of them. What makes the index
    fast is its one byte a dimension; what that blurs, refining puts right. Rows that it does not cover yet are scanned.
    """
    return request.distance_type(METRIC).nprobes(EVERY_PARTITION).refine_factor(REFINED)


def is_outgrown(stats: Any) -> bool:
    """Whether an index has come to have too many parts: compaction adds one each time, and a query looks into all."""
    return bool(stats is not None and stats.num_indices is not None and stats.num_indices > MOST_PARTS)


def partitions(rows: int) -> int:
    """How many parts an index over so many rows has, each looked through by one thread."""
    return max(1, rows // ROWS_A_PARTITION)


async def build_vector_index(chunks: Any) -> None:
    """Build it, or build it again, from the rows that are there; searching goes on meanwhile."""
    from lancedb.index import IvfSq

    config = IvfSq(distance_type=METRIC, num_partitions=partitions(await chunks.count_rows()))
    await chunks.create_index(VECTOR_COLUMN, config=config, replace=True, name=VECTOR_INDEX)
