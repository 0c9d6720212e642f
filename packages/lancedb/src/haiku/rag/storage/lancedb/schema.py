"""The tables of a database."""

from typing import Final

import pyarrow as pa

SCHEMA_VERSION = 2
METRIC: Final = "cosine"

DOCUMENTS = "documents"
CHUNKS = "chunks"
ITEMS = "items"
PICTURES = "pictures"
SETTINGS = "settings"

DATABASE_UID = b"haiku.rag:database"
"""Schema metadata of the documents table: a random mark that tells a re-created database from the one before it."""

PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}
MOMENT = pa.timestamp("us", tz="UTC")

SETTINGS_SCHEMA = pa.schema(
    [
        pa.field("generation", pa.int32(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("identity", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("language", pa.string()),
        pa.field("tables", pa.string(), nullable=False),
        pa.field("changed_at", MOMENT, nullable=False),
        pa.field("job", pa.string()),
        pa.field("upkeep", pa.string()),
    ]
)
"""A row for each generation of the tables, see `haiku.rag.storage.lancedb.layout`."""

ITEMS_SCHEMA = pa.schema(
    [
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("revision", pa.string(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("ref", pa.string(), nullable=False),
        pa.field("label", pa.string(), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("level", pa.int32()),
        pa.field("page", pa.int32()),
        pa.field("box", pa.string()),
    ]
)

PICTURES_SCHEMA = pa.schema(
    [
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("revision", pa.string(), nullable=False),
        pa.field("ref", pa.string(), nullable=False),
        pa.field("data", pa.large_binary(), nullable=False),
    ]
)

DOCUMENT_FIELDS = [
    pa.field("key", pa.string(), nullable=False, metadata=PRIMARY_KEY),
    pa.field("id", pa.string(), nullable=False),
    pa.field("revision", pa.string(), nullable=False),
    pa.field("uri", pa.string()),
    pa.field("title", pa.string()),
    pa.field("metadata", pa.string(), nullable=False),
    pa.field("content", pa.large_string(), nullable=False),
    pa.field("content_hash", pa.string()),
    pa.field("created_at", MOMENT, nullable=False),
    pa.field("updated_at", MOMENT, nullable=False),
    pa.field("chunk_count", pa.int32(), nullable=False),
]
STATE_COLUMNS = [field.name for field in DOCUMENT_FIELDS if field.name != "content"]
CHUNK_COLUMNS = ["id", "revision", "position", "content", "details"]


def documents_schema(uid: str) -> pa.Schema:
    """The documents table: the key is the primary key from the first version on, so that an upsert cannot double."""
    return pa.schema(DOCUMENT_FIELDS, metadata={DATABASE_UID: uid.encode()})


def chunks_schema(dimension: int) -> pa.Schema:
    """The chunks table: `content` is what is shown, `text` what full text searches.

    `identifiers` holds the code identifiers of the text, which its tokenizer would take apart, blanks between them.
    """
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("document_id", pa.string(), nullable=False),
            pa.field("revision", pa.string(), nullable=False),
            pa.field("position", pa.int32(), nullable=False),
            pa.field("content", pa.large_string(), nullable=False),
            pa.field("text", pa.large_string(), nullable=False),
            pa.field("identifiers", pa.large_string(), nullable=False),
            pa.field("details", pa.string(), nullable=False),
            pa.field("vector", pa.list_(pa.float32(), dimension), nullable=False),
        ]
    )
