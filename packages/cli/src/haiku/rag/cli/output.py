"""What is printed: data on standard output, everything else on standard error."""

import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import click

_C1_CONTROL = re.compile("[\x7f-\x9f]")
"""The control characters that JSON lets stand, and that a terminal would act on."""


def literal(text: str) -> str:
    """The text as it is, without the control characters that a terminal would act on."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char for char in lines if char in "\n\t" or unicodedata.category(char) != "Cc")


def one_line(text: str) -> str:
    """The text literally, on one line."""
    return " ".join(literal(text).split())


def print_text(text: str = "") -> None:
    """A piece of data for a reader."""
    click.echo(literal(text))


def print_json(value: Any) -> None:
    """Data as one JSON document in UTF-8, whatever the locale. Numbers that JSON lacks become null."""
    from pydantic_core import to_jsonable_python

    plain = to_jsonable_python(value, inf_nan_mode="null")
    text = _C1_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(plain, ensure_ascii=False, indent=2))
    click.echo(text.encode("utf-8", "replace") + b"\n", nl=False)


@contextmanager
def plugins_speaking() -> Iterator[None]:
    """While plugins are loaded or at work: what they print goes to standard error, for the other is the data's."""
    with redirect_stdout(sys.stderr):
        yield


def notice(text: str) -> None:
    """A line about what is going on."""
    click.echo(one_line(text), err=True)


def warning(text: str) -> None:
    """A line about something that went wrong without stopping the command."""
    notice(f"Warning: {text}")


def open_closed_streams() -> None:
    """Stand the null device in for a standard stream that was closed before the program began."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, mode), encoding="utf-8", errors="replace"))


def print_what_fits() -> None:
    """Let characters that the terminal's encoding lacks print as `?`, instead of ending the command."""
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="replace")
