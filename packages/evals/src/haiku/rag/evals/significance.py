"""Whether one way is better than another, or was lucky with these questions: paired tests by scipy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How much higher the second's mean is than the first's, over the same questions.

    `low` and `high` bound the difference with 95 % confidence, and `p` is the probability of one at least as large if
    there were none (Student's paired t-test, two-sided); None where there are fewer than two questions.
    """

    count: int
    first: float
    second: float
    low: float | None
    high: float | None
    p: float | None

    @property
    def mean(self) -> float:
        """The difference."""
        return self.second - self.first


def paired_difference(first: ArrayLike, second: ArrayLike) -> Difference:
    """The difference of two lists of figures, which are of the same questions in the same order."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    low = high = p = None
    gained = b - a
    if len(a) > 1 and np.ptp(gained) == 0.0:  # every question gains the same, for which the test has no answer
        low = high = float(gained[0])
        p = 1.0 if low == 0.0 else 0.0
    elif len(a) > 1:
        from scipy.stats import ttest_rel

        result = ttest_rel(b, a)
        interval = result.confidence_interval(CONFIDENCE)
        low, high, p = float(interval.low), float(interval.high), float(result.pvalue)
    return Difference(count=len(a), first=float(a.mean()), second=float(b.mean()), low=low, high=high, p=p)


def adjusted(values: Sequence[float | None]) -> list[float | None]:
    """The p-values as they are when several are looked at together (Benjamini and Hochberg, 1995)."""
    from scipy.stats import false_discovery_control

    known = [value for value in values if value is not None]
    corrected = iter(false_discovery_control(known).tolist() if known else [])
    return [None if value is None else next(corrected) for value in values]
