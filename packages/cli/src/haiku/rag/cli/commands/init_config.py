"""`haiku-rag init-config`."""

from pathlib import Path

import click

from haiku.rag.cli.example import example_config
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.output import print_text
from haiku.rag.errors import ConfigError
from haiku.rag.plugins.kernel import load_kernel


@click.command()
@click.argument("path", default="haiku.rag.yaml")
@pass_invocation
def command(invocation: Invocation, path: str) -> None:
    """Write an example configuration to PATH, by default ./haiku.rag.yaml. Opens no database, overwrites nothing."""
    text = example_config(invocation.kernel or load_kernel())
    try:
        with Path(path).expanduser().open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"'{path}' exists already, and is left as it is. Give another path.") from None
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be written: {error.strerror}.") from None
    print_text(f"Wrote an example configuration to {path}.")
