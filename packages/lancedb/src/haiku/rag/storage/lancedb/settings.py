"""The `lancedb` section of the configuration."""

from typing import Annotated

from pydantic import Field, SecretStr

from haiku.rag.config.section import NonBlank, StorageSection


class LanceDBSettings(StorageSection):
    """Databases by name, and how they are reached.

    Another process's commit is seen within `read_consistency_interval_seconds`. `storage_options` go to the object
    store; `api_key` and `region` are for `db://` locations. `vector_memory_mb` bounds the vectors that are held in
    memory, for all databases together: those that do not fit are scanned on disk.
    """

    read_consistency_interval_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    vector_memory_mb: Annotated[int, Field(ge=0)] = 512
    api_key: SecretStr | None = None
    region: NonBlank | None = None
