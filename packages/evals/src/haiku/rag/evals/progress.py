"""How far a measurement is."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of something long: `done` of `total` of what `label` says."""

    label: str
    done: int
    total: int


OnStep = Callable[[Step], None]


def unseen(step: Step) -> None:
    """Nobody watches."""
