"""`pgdyno servers`: which PostgreSQL installations --pg can choose, and how to get more."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from pgdyno.errors import InvalidInput, nearest_hint
from pgdyno.hosts.local import Local
from pgdyno.servers import removing
from pgdyno.servers.binaries import CLIENT_PROGRAMS, Installation, find_installations, of_cache
from pgdyno.servers.build_options import BuildOptions
from pgdyno.servers.building import build
from pgdyno.servers.cache import Cache
from pgdyno.servers.fetching import fetch
from pgdyno.servers.readable import prune_copies
from pgdyno.units import format_counted


@click.group()
def servers() -> None:
    """PostgreSQL installations on this machine: found, fetched, built."""


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
        click.echo("no PostgreSQL was found; pgdyno servers fetch VERSION brings one")
        return
    show(found, Console())


@servers.command("fetch")
@click.argument("versions", metavar="VERSION...", nargs=-1, required=True)
def fetch_servers(versions: tuple[str, ...]) -> None:
    """Fetch binaries with mvn: 12 for its newest minor version, or 12.3.

    They come from Maven's registry (Zonky's embedded PostgreSQL), with contrib and without client
    programs.
    """
    for version in versions:
        kept = fetch(version, Local(), cache=Cache(), notice=_tell)
        click.echo(f"postgresql {of_cache(Local(), kept).version} is in {kept.folder}")


@servers.command("build")
@click.argument("source")
@click.option("--name", help="For --pg build:NAME; without it the build has a digest for a name.")
@click.option("--block-size", "block_kb", metavar="KB", default=8, show_default=True, type=int,
              help="Of data pages: 1, 2, 4, 8, 16 or 32 kB.")  # fmt: skip
@click.option("--wal-block-size", "wal_block_kb", metavar="KB", default=8, show_default=True,
              type=int, help="Of WAL pages: 1 to 64 kB.")  # fmt: skip
@click.option("--configure", metavar="OPTION", multiple=True,
              help="A further option of configure, as --enable-cassert or CFLAGS=-O3.")  # fmt: skip
@click.option("--patch", "patches", multiple=True, type=click.Path(path_type=Path),
              help="Apply it first, as patch -p1 does.")  # fmt: skip
def build_server(source: str, **options: Any) -> None:
    r"""Build a server from SOURCE, once for each set of options.

    \b
    SOURCE  a folder that holds 'configure', or a tarball of one
            git:REPOSITORY#REF, or git:REF of the repository in PGDYNO_REPOSITORY
            debian:PACKAGE, where apt is told of sources: debian:postgresql-15

    \b
    Examples:
      pgdyno servers build postgresql-18.6.tar.bz2 --block-size 16 --name pg16k
      pgdyno run tpcb --pg build:pg16k
      pgdyno servers build git:~/postgres#master --patch idea.patch --name idea
    """
    patches = tuple(one.expanduser().absolute() for one in options.pop("patches"))
    chosen = BuildOptions(patches=patches, **options)
    kept = build(source, chosen, Local(), cache=Cache(), notice=_tell)
    click.echo(f"--pg build:{chosen.name or kept.facts['digest']} is in {kept.folder}")


@servers.command("remove")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def remove_servers(names: tuple[str, ...]) -> None:
    """Remove what was fetched or built: by version, name or digest, as 'list' shows them."""
    cache = Cache()
    chosen = []
    for name in names:
        kept = removing.find(cache, name)
        if kept is None:
            known = [one for each in cache.kept() for one in removing.names_of(each)]
            raise InvalidInput(
                f"no fetched or built server is called '{name}'", hint=nearest_hint(name, known)
            )
        chosen.append(kept)
    for kept in chosen:
        removing.remove(cache, kept)
        _tell(f"removed {kept.folder}")
    prune_copies()


def _tell(line: str) -> None:
    click.echo(line, err=True)


def show(found: tuple[Installation, ...], console: Console) -> None:
    """Print the installations: a line each, or several where the terminal is too narrow for it."""
    table = render(found)
    needed = Measurement.get(console, console.options.update(width=1000), table).maximum
    if needed <= console.width:
        console.print(table)
        return
    for one in found:
        whether = "usable" if one.problem is None else f"not usable: {one.problem}"
        parts = (one.version, _origin(one), whether, f"client programs: {_client_programs(one)}",
                 format_counted(len(one.extensions), "extension"))  # fmt: skip
        console.print(Text(", ".join(parts)))
        # A path that is folded cannot be copied: rather let the terminal wrap the line.
        console.print(Text(f"  {one.bin_dir}"), soft_wrap=True)


def _origin(one: Installation) -> str:
    """Where it comes from; of a built one how --pg names it, and how it was built."""
    return f"build:{one.names[0]} ({one.made})" if one.names else one.origin


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
            _origin(one),
            one.problem or "yes",
            _client_programs(one),
            str(len(one.extensions)),
            str(one.bin_dir),
        )
    return table
