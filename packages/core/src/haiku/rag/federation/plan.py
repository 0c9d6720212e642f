"""How a selection is grouped into calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.errors import PluginError

if TYPE_CHECKING:
    from haiku.rag.federation.request import SearchRequest
    from haiku.rag.federation.scope import DatabaseScope
    from haiku.rag.plugins.kernel import Kernel


@dataclass(frozen=True)
class SearchPlan:
    """The calls of a search: each is a group of databases of one engine. A group of one is asked by itself."""

    calls: tuple[tuple[DatabaseRef, ...], ...]


def make_plan(kernel: Kernel, scope: DatabaseScope, request: SearchRequest) -> SearchPlan:
    """The first plan that a plugin offers, core's own last; it must ask each database once, and one engine a call."""
    plan: SearchPlan = kernel.decide("haiku_rag_plan_federation", expects=SearchPlan, scope=scope, request=request)
    asked = sorted(ref.name for call in plan.calls for ref in call)
    if asked != sorted(scope.names):
        raise PluginError(f"the federation plan asks {asked}, and the selection is {sorted(scope.names)}.")
    if any(len({ref.storage for ref in call}) != 1 for call in plan.calls):
        raise PluginError("the federation plan has a call that is not for databases of one engine.")
    return plan


def group_by_engine(scope: DatabaseScope) -> SearchPlan:
    """Core's own answer: one call for all databases of an engine that searches many, else one a database."""
    groups: dict[str, list[DatabaseRef]] = {}
    for ref in scope.databases:
        groups.setdefault(ref.storage if ref.searches_many else f"\0{ref.name}", []).append(ref)
    return SearchPlan(tuple(tuple(group) for group in groups.values()))
