"""A database with what `haiku.rag.contracts.maintenance` asks for beyond reading and writing."""

from haiku.rag.storage.lancedb.database import LanceDBDatabase


class MaintainedDatabase(LanceDBDatabase):
    """What `LanceDBStorage` opens."""
