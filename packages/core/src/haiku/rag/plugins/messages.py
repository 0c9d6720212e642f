"""The sentences about plugins that are interface, one function each."""

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` with the nearest of `known`, or nothing where none is near."""
    by_lower = {item.lower(): item for item in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean '{by_lower[close[0]]}'?" if close else ""


def labelled(name: str, distribution: str, version: str) -> str:
    """A plugin as messages give it: `'acme' (acme-rerank 1.2)`."""
    return f"'{name}' ({distribution} {version})"


def not_loaded(name: str, distribution: str, version: str, reason: str) -> str:
    """Why a plugin is switched off."""
    end = "" if reason.endswith((".", "!", "?")) else "."
    return (
        f"plugin {labelled(name, distribution, version)} was not loaded: {reason}{end} "
        f"Details: haiku-rag plugins check {name}."
    )


def install_line(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'haiku-rag-core[{extra}]'"


def missing_dependency(kind: str, name: str, needs: str, extra: str) -> str:
    """A plugin is there, but a library that it imports is not."""
    how = f" Install it with: {install_line(extra)}." if extra else f" Install {needs} and try again."
    return f"{kind} '{name}' needs {needs}.{how}"


def conflict(kind: str, name: str, providers: Iterable[str]) -> str:
    """Several plugins provide one name. Each provider is `distribution version (module)`."""
    named = list(providers)
    count = "two" if len(named) == 2 else str(len(named))
    return (
        f"{kind} '{name}' is provided by {count} plugins: {' and '.join(named)}. "
        "Uninstall one, set plugins.disabled, or set plugins.prefer."
    )


def rivals(purpose: str, providers: Iterable[str]) -> str:
    """Several plugins serve one purpose, such as `reading '.md' files`."""
    return (
        f"several plugins serve for {purpose}: {' and '.join(providers)}. "
        "Uninstall one, set plugins.disabled, or set plugins.prefer."
    )


def unknown(kind: str, name: str, known: Iterable[str], *, extra: str = "") -> str:
    """A name that no installed plugin of the kind has."""
    names = sorted(known)
    article = "an" if kind[0] in "aeiou" else "a"
    listed = f"Known: {', '.join(names)}." if names else f"No plugin that provides {article} {kind} is installed."
    install = f" Install it with: {install_line(extra)}." if extra else ""
    return f"no {kind} '{name}'. {listed}{suggestion(name, names)}{install}"
