"""What the figures have to reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A figure of a part of the benchmark, `key.inner` for one inside; at most `most`, or at least `least`."""

    part: str
    figure: str
    most: float | None = None
    least: float | None = None
    aim: float | None = None

    def judged(self, figures: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The bar with the value reached, and whether it held."""
        value: Any = figures[self.part]
        for key in self.figure.split("."):
            value = value[key]
        held = value <= self.most if self.most is not None else value >= (self.least or 0.0)
        return {**asdict(self), "value": value, "held": held}


def bars(kind: str) -> list[Bar]:
    """The bars for one kind of vectors."""
    many, large, half = f"many-{kind}", f"large-{kind}", f"half-{kind}"
    return [
        Bar(part=many, figure="hybrid_ratio", most=2.5, aim=1.5),
        Bar(part=many, figure="queries_a_second", least=33.6, aim=56),
        Bar(part=many, figure="peak_memory_mb", most=900),
        Bar(part=many, figure="first_query_ms", most=500),
        Bar(part=many, figure="first_query_ratio", most=2),
        Bar(part=many, figure="outside_storage_calls.p50_ms", most=5),
        Bar(part=large, figure="large_vector.p50_ms", most=12),
        Bar(part=large, figure="large_recall_early", least=0.99),
        Bar(part=large, figure="large_recall", least=0.99),
        Bar(part=half, figure="vector_half_ratio", most=1.5),
        Bar(part=half, figure="fts_half_ratio", most=1.5),
        Bar(part=half, figure="hybrid_half_ratio", most=1.5),
        Bar(part=f"write-{kind}", figure="write_chunks_a_second", least=5_000),
    ]
