"""`python -m haiku.rag.cli` is `haiku-rag`."""

from haiku.rag.cli.app import cli

cli()
