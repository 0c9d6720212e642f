"""Searching several databases as one: which, how they open, what they offer, and how that becomes one list."""

from haiku.rag.federation.plan import SearchPlan
from haiku.rag.federation.request import SearchRequest
from haiku.rag.federation.scope import DatabaseScope, ScopeSelector

__all__ = ["DatabaseScope", "ScopeSelector", "SearchPlan", "SearchRequest"]
