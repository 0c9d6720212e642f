"""The progress bar."""

import io
import sys

import pytest

from haiku.rag.cli.progress import progress, waiting
from haiku.rag.client import IngestStep

STEP = IngestStep(done=1, total=3, uri="file:///a")


class Terminal(io.StringIO):
    """What stands for a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_shown_how_far_it_is_with_the_label_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress("[bold]a\x1b]b") as show:
        show(STEP)
    assert "[bold]a]b" in terminal.getvalue()
    assert "1/3" in terminal.getvalue()


def test_a_terminal_is_shown_that_something_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with waiting("[bold]a\x1b]b"):
        pass
    assert "[bold]a]b" in terminal.getvalue()


def test_elsewhere_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress("a") as show:
        show(STEP)
    with waiting("a"):
        pass
    assert stream.getvalue() == ""
