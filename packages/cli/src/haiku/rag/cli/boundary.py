"""From what a command raises to one `Error: …` line and an exit status."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from haiku.rag.cli.output import one_line
from haiku.rag.errors import HaikuRagError
from haiku.rag.plugins.kernel import Kernel

DEBUG_VARIABLE = "HAIKU_RAG_DEBUG"
USAGE = 2
INTERRUPTED = 130

logger = logging.getLogger(__name__)


class Failure(click.ClickException):
    """A failure as the command line reports it: one line on standard error, and an exit status."""

    def __init__(self, message: str, *, status: int = 1) -> None:
        super().__init__(one_line(message))
        self.exit_code = status  # type: ignore[misc]  # click declares it for the class, and reads it from the instance


@contextmanager
def reported(kernel: Kernel, *, verbose: bool) -> Iterator[None]:
    """Turn what is raised inside into what click shows; click's own exceptions pass."""
    try:
        yield
        sys.stdout.flush()
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        _discard_output()
        raise click.exceptions.Exit(0) from None
    except HaikuRagError as error:
        _trace(verbose=verbose)
        raise Failure(str(error), status=exit_status(error, kernel)) from None
    except Exception as error:  # noqa: BLE001 - the command line's boundary: no traceback reaches a user who did not ask for one
        _trace(verbose=verbose)
        raise _unexpected(error) from None


def exit_status(error: HaikuRagError, kernel: Kernel) -> int:
    """What the error's record says, or that of a type it derives from; else what its type says."""
    record = kernel.error_record(type(error))
    return error.exit_status if record is None else record.exit_status


def _unexpected(error: Exception) -> Failure:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if type(error) is ValueError:  # core's word for a bad argument; types derived from it are accidents
        return Failure(str(error) or text, status=USAGE)
    hint = "For the traceback, run it again with --verbose before the command, or with HAIKU_RAG_DEBUG=1."
    return Failure(f"{text.rstrip('.')}. {hint}")


def _trace(*, verbose: bool) -> None:
    if verbose or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0"):
        import traceback

        click.echo(traceback.format_exc(), err=True, nl=False)


def _discard_output() -> None:
    """Give what is still buffered somewhere to go, so that the interpreter ends quietly."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        logger.debug("standard output is not a file")
