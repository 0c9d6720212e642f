"""The command `acme-greet`."""

import click


@click.command()
@click.argument("name")
def greet(name: str) -> None:
    """Greet NAME."""
    click.echo(f"Good day, {name}.")
