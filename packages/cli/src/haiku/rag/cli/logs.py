"""Log records as plain lines on standard error."""

import logging
import os
import sys
import traceback

import click

from haiku.rag.cli.output import one_line

NAME = "haiku.rag"


class LineHandler(logging.Handler):
    """Writes `Warning: …` to whatever standard error is at the time: a progress bar stands in for it while it runs."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        sys.stderr.write(f"{record.levelname.capitalize()}: {one_line(record.getMessage())}\n")
        if record.exc_info:  # only records for debugging carry it
            sys.stderr.write("".join(traceback.format_exception(*record.exc_info)))


def start_logging(ctx: click.Context, *, verbose: bool) -> None:
    """Show haiku.rag's warnings, or with `verbose` its information too, until the context closes.

    Where the program around has set up logging already, its set-up stands.
    """
    if logging.getLogger().handlers:
        return
    ours = logging.getLogger(NAME)
    handler, level, propagate = LineHandler(), ours.level, ours.propagate
    ours.addHandler(handler)
    debug = os.environ.get("HAIKU_RAG_DEBUG", "") not in ("", "0")
    ours.setLevel(logging.DEBUG if debug else logging.INFO if verbose else logging.WARNING)
    ours.propagate = False

    def stop() -> None:
        ours.removeHandler(handler)
        ours.setLevel(level)
        ours.propagate = propagate

    ctx.call_on_close(stop)
