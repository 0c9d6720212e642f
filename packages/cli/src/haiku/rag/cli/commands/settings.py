"""`haiku-rag settings`."""

import click
import yaml

from haiku.rag.cli.effective import effective_settings
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.options import json_option
from haiku.rag.cli.output import print_json, print_text, warning
from haiku.rag.config import find_config


@click.command()
@json_option
@pass_invocation
def command(invocation: Invocation, *, as_json: bool) -> None:
    """Show the configuration in effect as YAML, defaults included and secrets masked. Opens no database."""
    config = invocation.config
    settings, troubles = effective_settings(config)
    for trouble in troubles:
        warning(trouble)
    file = find_config(invocation.config_path)
    inert = list(config.inert_sections)
    if as_json:
        print_json({"file": file, "settings": settings, "inert_sections": inert})
        return
    print_text(f"# {file or 'There is no configuration file; these are the defaults.'}")
    print_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True).rstrip())
    if inert:
        print_text(f"# Sections that nothing installed reads: {', '.join(inert)}")
