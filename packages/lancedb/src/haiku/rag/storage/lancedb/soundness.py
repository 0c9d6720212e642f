"""Whether a database's indexes answer: their files may be lost or damaged while every row is there."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pyarrow as pa

from haiku.rag.contracts.maintenance import Finding
from haiku.rag.storage.lancedb.failures import ENGINE_ERRORS
from haiku.rag.storage.lancedb.tables import Tables
from haiku.rag.storage.lancedb.text import quoted
from haiku.rag.storage.lancedb.text_index import TEXT_INDEXES
from haiku.rag.storage.lancedb.vector_index import VECTOR_INDEX, tuned
from haiku.rag.storage.lancedb.verdicts import verdict

Question = Callable[[], Awaitable[pa.Table]]
INDEXES = "indexes"


async def index_verdict(tables: Tables) -> Finding:
    """Ask each index once, for a row that is there."""
    silent = [name async for name, question in _questions(tables) if not await _answers(question)]
    return verdict(
        INDEXES,
        f"These indexes cannot be read: {', '.join(silent)}." if silent else "",
        fine="Every index answers.",
        status="failed",
        remedy="haiku-rag create-index",
        fixable=True,
    )


async def _questions(tables: Tables) -> AsyncIterator[tuple[str, Question]]:
    for table in tables.parts:
        names = {index.name: index.columns[0] for index in await table.list_indices()}
        for name, column in names.items():
            row = await _first_row(table, column)
            if row is not None:
                yield f"{name} of {table.name}", partial(_ask, table, name, column, row)


async def _first_row(table: Any, column: str) -> Any:
    rows = (await table.query().select([column]).limit(1).to_arrow())[column].to_pylist()
    return rows[0] if rows else None


async def _ask(table: Any, name: str, column: str, value: Any) -> pa.Table:
    from lancedb.query import MatchQuery

    query = table.query()
    if name == VECTOR_INDEX:
        found = tuned(query.nearest_to(value))
    elif name in TEXT_INDEXES:
        words = " ".join(str(value).split()[:8]) or "a"
        found = query.nearest_to_text(MatchQuery(words, column))  # type: ignore[call-arg]  # its defaults are hidden
    else:
        found = query.where(f"{column} = {quoted(str(value))}")
    answer: pa.Table = await found.limit(1).with_row_id().to_arrow()
    return answer


async def _answers(question: Question) -> bool:
    try:
        await question()
    except ENGINE_ERRORS:
        return False
    return True
