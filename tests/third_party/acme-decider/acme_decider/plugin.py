"""What acme-decider answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from haiku.rag.plugins import ConfigSectionRecord, hookimpl

if TYPE_CHECKING:
    from haiku.rag.config import AppConfig
    from haiku.rag.contracts import DatabaseRef
    from haiku.rag.errors import HaikuRagError
    from haiku.rag.federation import DatabaseScope, ScopeSelector, SearchPlan, SearchRequest


@hookimpl
def haiku_rag_register_config_section() -> Iterable[ConfigSectionRecord]:
    """The section `acme_decider`."""
    yield ConfigSectionRecord(
        name="acme_decider", summary="Where tenants' databases are", factory="acme_decider.tenants:TenantSection"
    )


@hookimpl
def haiku_rag_resolve_scope(config: AppConfig, selector: ScopeSelector) -> DatabaseScope | None:
    """A tenant's database, which no configuration lists."""
    from acme_decider.tenants import scope_of_tenant

    return scope_of_tenant(config, selector)


@hookimpl
def haiku_rag_plan_federation(scope: DatabaseScope, request: SearchRequest) -> SearchPlan | None:
    """Full text is asked database by database; anything else as core would."""
    from acme_decider.tenants import one_by_one

    return one_by_one(scope) if request.search_type == "fts" else None


@hookimpl
def haiku_rag_translate_error(error: Exception, ref: DatabaseRef) -> HaikuRagError | None:
    """A damaged SQLite file, in acme's words."""
    from acme_decider.tenants import damaged

    return damaged(error, ref)
