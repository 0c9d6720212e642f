"""How a selection is grouped into calls, and what a plan must hold."""

from typing import Any

import pytest

from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import PluginError
from haiku.rag.federation import DatabaseScope, SearchPlan, SearchRequest
from haiku.rag.federation.plan import group_by_engine, make_plan
from haiku.rag.plugins import hookimpl
from haiku.rag.testing import testing_kernel


def ref(name: str, *, storage: str = "memory", many: bool = False) -> DatabaseRef:
    return DatabaseRef(name=name, location=f"memory://{name}", storage=storage, searches_many=many)


SCOPE = DatabaseScope((ref("a", storage="x", many=True), ref("b"), ref("c", storage="x", many=True)))
REQUEST = SearchRequest(query="q", sources=SCOPE.names, limit=5)


def test_databases_of_an_engine_that_searches_many_are_one_call_and_others_one_each() -> None:
    assert [[entry.name for entry in call] for call in group_by_engine(SCOPE).calls] == [["a", "c"], ["b"]]


def test_core_answers_when_no_plugin_does() -> None:
    assert make_plan(testing_kernel(), SCOPE, REQUEST) == group_by_engine(SCOPE)


def test_a_plugins_plan_comes_first() -> None:
    class Apart:
        @hookimpl
        def haiku_rag_plan_federation(self, scope: DatabaseScope) -> SearchPlan:
            return SearchPlan(tuple((entry,) for entry in scope.databases))

    assert len(make_plan(testing_kernel(Apart()), SCOPE, REQUEST).calls) == 3


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c", "c"], ["a", "b", "d"]])
def test_a_plan_that_does_not_ask_each_database_once_is_refused(names: list[str]) -> None:
    class Wrong:
        @hookimpl
        def haiku_rag_plan_federation(self, scope: Any) -> SearchPlan:
            return SearchPlan((tuple(ref(name) for name in names),))

    with pytest.raises(PluginError, match=r"the federation plan asks .* the selection is \['a', 'b', 'c'\]"):
        make_plan(testing_kernel(Wrong()), SCOPE, REQUEST)


@pytest.mark.parametrize("calls", [(SCOPE.databases,), ((), *((one,) for one in SCOPE.databases))])
def test_a_plan_with_a_call_that_is_not_for_one_engine_is_refused(calls: tuple[tuple[DatabaseRef, ...], ...]) -> None:
    class Mixed:
        @hookimpl
        def haiku_rag_plan_federation(self) -> SearchPlan:
            return SearchPlan(calls)

    with pytest.raises(PluginError, match="not for databases of one engine"):
        make_plan(testing_kernel(Mixed()), SCOPE, REQUEST)
