"""What is searched for, and how."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from types import NoneType
from typing import Literal, get_args

from haiku.rag.contracts.filters import Filter
from haiku.rag.models import SearchType

OnUnavailable = Literal["raise", "skip"] | Sequence[str]


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """One search, with every default filled in from the configuration.

    `sources` are the selected names, in order. `on_unavailable` is `"raise"`, `"skip"` or the names that must
    answer. The numbers are as in the `search` section.
    """

    query: str | bytes
    sources: tuple[str, ...]
    limit: int
    search_type: SearchType = "hybrid"
    filter: str | Filter | None = None
    fusion: str | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    boosts: Mapping[str, float] = field(default_factory=dict)
    min_score: float | None = None
    dedupe: bool = False
    on_unavailable: OnUnavailable = "raise"
    include_images: bool = False

    def __post_init__(self) -> None:
        _check_types(self)
        if self.limit < 1:
            raise ValueError(f"limit must be at least 1, not {self.limit}")
        if self.search_type not in ("hybrid", "vector", "fts"):
            raise ValueError(f"search_type must be 'hybrid', 'vector' or 'fts', not {self.search_type!r}")
        if isinstance(self.on_unavailable, str) and self.on_unavailable not in ("raise", "skip"):
            raise ValueError(f"on_unavailable must be 'raise', 'skip' or a list of names, not {self.on_unavailable!r}")
        bad = [name for name, weight in self.weights.items() if not isfinite(weight) or weight < 0]
        bad += [name for name, boost in self.boosts.items() if not isfinite(boost)]
        if bad:
            raise ValueError(f"the weight or boost of '{bad[0]}' must be a finite number, and a weight not below 0")
        if self.min_score is not None and not isfinite(self.min_score):
            raise ValueError("min_score must be a finite number")

    @property
    def text(self) -> str | None:
        """The query's text; None for an image."""
        return self.query if isinstance(self.query, str) else None

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to search for."""
        return not (self.query.replace("\0", "").strip() if isinstance(self.query, str) else self.query)


def _check_types(request: SearchRequest) -> None:
    """A slip of the caller's is told as such, and not as a failure of the databases that stumble over it."""
    expected: dict[str, tuple[type, ...]] = {
        "query": (str, bytes),
        "limit": (int,),
        "filter": (str, *get_args(Filter), NoneType),
        "fusion": (str, NoneType),
        "weights": (Mapping,),
        "boosts": (Mapping,),
        "dedupe": (bool,),
        "on_unavailable": (str, Collection),
    }
    for name, types in expected.items():
        value = getattr(request, name)
        if not isinstance(value, types):
            raise TypeError(f"{name} does not take a {type(value).__name__}")
