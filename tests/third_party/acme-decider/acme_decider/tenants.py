"""Databases of tenants: where they are, how they are asked, and what it means when one is damaged."""

import sqlite3

from haiku.rag.config import AppConfig, Section
from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import SourceUnavailableError
from haiku.rag.federation import DatabaseScope, ScopeSelector, SearchPlan


class TenantSection(Section):
    """`root` is the file that holds the tenants' databases."""

    root: str = ""


def scope_of_tenant(config: AppConfig, selector: ScopeSelector) -> DatabaseScope | None:
    """The scope of `tenant-…`; None for any other name."""
    name = selector.database_name or ""
    if not name.startswith("tenant-"):
        return None
    location = f"acme-sql://{config.section('acme_decider').root}#{name}"
    return DatabaseScope((DatabaseRef(name=name, location=location, storage="acme-sql"),))


def one_by_one(scope: DatabaseScope) -> SearchPlan:
    """A call a database."""
    return SearchPlan(tuple((ref,) for ref in scope.databases))


def damaged(error: Exception, ref: DatabaseRef) -> SourceUnavailableError | None:
    """The error for a file that is not SQLite's."""
    if not isinstance(error, sqlite3.DatabaseError):
        return None
    return SourceUnavailableError(f"database '{ref.name}' is damaged. Fetch last night's copy.", source=ref.name)
