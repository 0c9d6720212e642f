"""A configuration over SQLite databases with every installed plugin and the hash embedder, and text for them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from acme_sqlstore.storage import SqlDatabase, SqlStorage

from haiku.rag.client import HaikuRAG
from haiku.rag.config import AppConfig
from haiku.rag.contracts import CandidateQuery, Database
from haiku.rag.plugins.kernel import Kernel
from haiku.rag.plugins.loading import load_plugins
from haiku.rag.testing import plugin_without_storage, testing_plugin

TEXTS = {
    "bridges": "The stone bridge was rebuilt in 1926.",
    "bread": "Yeast makes gas, and so bread rises.",
    "sky": "A comet has a tail of dust and no bridge.",
}


def configuration(file: Path, **sections: Any) -> AppConfig:
    """The databases of `TEXTS`, all in one file."""
    places = {name: f"acme-sql://{file}#{name}" for name in TEXTS}
    data = {"acme_sql": {"databases": places}, **sections}
    kernel = Kernel([*load_plugins(), testing_plugin(plugin_without_storage)])
    return AppConfig.model_validate(data, context={"kernel": kernel})


async def fill(config: AppConfig, texts: Mapping[str, str] = TEXTS) -> None:
    """Write each database's text."""
    for name, text in texts.items():
        async with HaikuRAG(config=config, sources=[name], create=True) as client:
            await client.create_document(text, uri=f"text:{name}")


def counted() -> Counter[str]:
    """Counts from now on how the engine is asked, and how many statements that takes."""
    calls: Counter[str] = Counter()
    search_many, search = SqlStorage.search_many, SqlDatabase.search

    async def count_many(
        storage: SqlStorage, databases: Sequence[Database], query: CandidateQuery
    ) -> list[pa.Table | Exception]:
        calls["search_many"] += 1
        before = storage.round_trips
        answers = await search_many(storage, databases, query)
        calls["statements"] += storage.round_trips - before
        return answers

    async def count_one(database: SqlDatabase, query: CandidateQuery) -> pa.Table:
        calls["search"] += 1
        return await search(database, query)

    SqlStorage.search_many, SqlDatabase.search = count_many, count_one  # type: ignore[method-assign]  # it counts
    return calls
