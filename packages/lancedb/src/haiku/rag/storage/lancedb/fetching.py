"""Running a query of the engine."""

from typing import Any

import pyarrow as pa


async def fetched(query: Any, *, at_most: int | None = None) -> pa.Table:
    """The rows of a query, and of one that gives at most so many no more is awaited than these.

    The engine's own `to_arrow` asks for the table's schema before each query, waits for the end of rows that are all
    there, and copies those of a text search. Each of these is another turn of the event loop, and with many databases
    searched at once the turns take longer than the searching.
    """
    stream = await query._inner.execute()  # noqa: SLF001
    batches: list[pa.RecordBatch] = []
    count = 0
    while at_most is None or count < at_most:
        try:
            batch = await anext(stream)
        except StopAsyncIteration:
            break
        batches.append(batch)
        count += batch.num_rows
    return pa.Table.from_batches(batches, schema=stream.schema if not batches else batches[0].schema)
