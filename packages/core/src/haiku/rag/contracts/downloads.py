"""What an embedder or a reranker may offer beside its contract: fetching its model before it is needed."""

from collections.abc import AsyncGenerator
from typing import Annotated, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

Size = Annotated[int, Field(ge=0)]


class DownloadStep(BaseModel):
    """How far a download is: `done` of `total` bytes of what a user knows as `name`; None where nobody knows how many.

    Neither an address nor a key is in the name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1)]
    done: Size
    total: Size | None = None


@runtime_checkable
class Downloading(Protocol):
    """What the object that a record's factory makes also is, where its model can be fetched.

    Core finds it by the method's name; an object without it needs no download.
    """

    def downloads(self) -> AsyncGenerator[DownloadStep, None]:
        """Fetch everything that is missing, and say how far it is; no step at all where nothing was.

        `done` never falls within a name, and each name's last step has `done` equal to `total`, where that is known.
        Broken off at any point, by an error, by closing the generator or by ending the process, it leaves nothing that
        is later taken for whole; called again it goes on or begins anew. It fetches because it was asked to, whatever
        the configuration says of being offline. Raises a `HaikuRagError` whose sentence says what could not be fetched
        and why, without addresses and keys.
        """
