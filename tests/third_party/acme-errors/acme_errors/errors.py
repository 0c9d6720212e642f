"""The quota's error, and a command that meets it."""

import click

from haiku.rag.errors import HaikuRagError


class QuotaError(HaikuRagError):
    """The quota is used up."""

    exit_status = 75


@click.command()
def spend() -> None:
    """Spend the quota."""
    raise QuotaError("the quota is used up. Ask for more.")
