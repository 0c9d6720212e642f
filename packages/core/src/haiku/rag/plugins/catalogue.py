"""The catalogue: what core's own metadata says can be installed beside it."""

import re
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires

CORE = "haiku-rag-core"
FAMILY = "haiku-rag-"
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+).*;.*\bextra == ['\"](?P<extra>[^'\"]+)['\"]")
_PREFIXES = {"embedder": "embed", "reranker": "rerank"}


def normalized(name: str) -> str:
    """A distribution's name as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@lru_cache(maxsize=1)
def extras() -> dict[str, str]:
    """Each extra of core that stands for one distribution, and that distribution."""
    try:
        requirements = requires(CORE) or []
    except PackageNotFoundError:  # pragma: no cover - core used from a source tree without its metadata
        return {}
    named: dict[str, set[str]] = {}
    for match in filter(None, map(_REQUIREMENT.match, requirements)):
        named.setdefault(match["extra"], set()).add(normalized(match["name"]))
    alone = {extra: next(iter(names)) for extra, names in named.items() if len(names) == 1}
    return {extra: name for extra, name in alone.items() if name.startswith(FAMILY) and name != CORE}


def is_first_party(distribution: str) -> bool:
    """Whether the distribution is core or one that its extras name."""
    return normalized(distribution) in {CORE, *extras().values()}


def extra_for(kind: str, name: str) -> str:
    """The extra that would install a plugin of the kind and name, or an empty string."""
    slug = name.replace("_", "-")
    prefix = _PREFIXES.get(kind, kind)
    return next((extra for extra in (slug, f"{prefix}-{slug}") if extra in extras()), "")
