"""`haiku-rag tag`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from haiku.rag.cli.boundary import Failure
from haiku.rag.cli.invocation import Invocation, pass_invocation
from haiku.rag.cli.maintenance import run_on
from haiku.rag.cli.options import database_option, json_option
from haiku.rag.cli.output import notice, one_line, print_json, print_text

if TYPE_CHECKING:
    from haiku.rag.contracts import TagInfo


@click.group()
def command() -> None:
    """Name states of a database, to read them later (--at) or to bring them back."""


@command.command()
@click.argument("name")
@database_option
@json_option
@pass_invocation
def create(invocation: Invocation, name: str, database_path: str | None, *, as_json: bool) -> None:
    """Name the state as it is now."""
    client = invocation.writer("creating a tag", database_path, any_embedding=True)
    tag = run_on(client, "tag", lambda opened: opened.create_tag(name))
    if as_json:
        print_json({"results": [{"source": client.source, **tag.model_dump()}]})
    else:
        print_text(f"Database '{client.source}' has the tag '{one_line(tag.name)}'.")


@command.command("list")
@database_option
@json_option
@pass_invocation
def list_tags(invocation: Invocation, database_path: str | None, *, as_json: bool) -> None:
    """List the tags: name and when it was made, in UTC."""
    scope = invocation.live("listing tags", database_path, writes=False)
    client = invocation.reader(scope, any_embedding=True)
    tags = run_on(client, "tags", lambda opened: opened.tags())
    if as_json:
        print_json({"results": [{"source": client.source, **tag.model_dump()} for tag in tags]})
        return
    for tag in tags:
        print_text(tag_line(tag))
    if not tags:
        notice("There are no tags to list.")


@command.command()
@click.argument("name")
@database_option
@json_option
@pass_invocation
def delete(invocation: Invocation, name: str, database_path: str | None, *, as_json: bool) -> None:
    """Forget a tag. The database stays as it is."""
    client = invocation.writer("deleting a tag", database_path, any_embedding=True)
    run_on(client, "tag", lambda opened: opened.delete_tag(name))
    if as_json:
        print_json({"results": [{"source": client.source, "name": name}]})
    else:
        print_text(f"Deleted the tag '{one_line(name)}' of database '{client.source}'.")


@command.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@database_option
@json_option
@pass_invocation
def restore(invocation: Invocation, name: str, database_path: str | None, *, yes: bool, as_json: bool) -> None:
    """Make the state of a tag the current one, in one commit.

    The state before is given a tag of its own first; restoring that one undoes it.
    """
    client = invocation.writer("restoring a tag", database_path, any_embedding=True)
    if not yes:
        _confirm(name, client.source_names[0])
    before = run_on(client, "restore", lambda opened: opened.restore_tag(name))
    if as_json:
        print_json({"results": [{"source": client.source, "name": name, "before": before}]})
        return
    print_text(f"Database '{client.source}' is as it was at the tag '{one_line(name)}'.")
    print_text(f"The state before has the tag '{one_line(before)}'.")


def tag_line(tag: TagInfo) -> str:
    """The tag on one line: name, when it was made, and whether it cannot be read."""
    made = "" if tag.created_at is None else f"  {tag.created_at:%Y-%m-%d %H:%M:%S}"
    return f"{one_line(tag.name)}{made}" + ("" if tag.complete else "  (not complete)")


def at_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


def _confirm(name: str, database: str) -> None:
    if not at_terminal():
        raise click.UsageError("restoring a tag replaces the current state. Give --yes to do so without being asked.")
    question = f"Replace the current state of database '{database}' by that of the tag '{one_line(name)}'?"
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        raise KeyboardInterrupt from None
    if not agreed:
        raise Failure("nothing was restored.")
