"""Log records on standard error."""

import logging
from types import SimpleNamespace
from typing import Any

import click
import pytest

from haiku.rag.plugins import CommandRecord, hookimpl

logger = logging.getLogger("haiku.rag.acme")


@click.command()
def talk() -> None:
    """Log something."""
    logger.info("all is %s", "well")
    logger.warning("not all\nis well\x1b")
    try:
        int("own words")
    except ValueError:
        logger.debug("it failed", exc_info=True)


@pytest.fixture
def talking(shell: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command line whose command `talk` logs, with root handlers as given, and none as a program finds them."""
    import sys

    monkeypatch.setitem(sys.modules, "acme_talk", sys.modules[__name__])

    @hookimpl
    def register() -> Any:
        yield CommandRecord(name="talk", summary="Talk", factory="acme_talk:talk")

    shell.use(SimpleNamespace(haiku_rag_register_command=register))

    def run(*arguments: str, handlers: Any = ()) -> Any:
        monkeypatch.setattr(logging.getLogger(), "handlers", list(handlers))
        return shell(*arguments)

    return run


def test_warnings_are_plain_lines_on_standard_error(talking: Any) -> None:
    result = talking("talk")
    assert (result.stdout, result.stderr) == ("", "Warning: not all is well\n")


def test_verbose_shows_information_too(talking: Any) -> None:
    assert talking("--verbose", "talk").stderr == "Info: all is well\nWarning: not all is well\n"


def test_a_plugins_own_failure_shows_with_its_traceback_when_debugging(
    talking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAIKU_RAG_DEBUG", "1")
    shown = talking("talk").stderr
    assert "Debug: it failed\nTraceback (most recent call last):\n" in shown
    assert shown.endswith("'own words'\n")


def test_logging_is_as_before_when_the_command_is_over(talking: Any) -> None:
    before = (list(logging.getLogger("haiku.rag").handlers), logging.getLogger("haiku.rag").level)
    talking("--verbose", "talk")
    assert (list(logging.getLogger("haiku.rag").handlers), logging.getLogger("haiku.rag").level) == before
    assert logging.getLogger("haiku.rag").propagate


def test_a_host_that_has_set_up_logging_keeps_it(talking: Any) -> None:
    assert talking("--verbose", "talk", handlers=[logging.NullHandler()]).stderr == ""
