"""Options that say what is tested: which PostgreSQL, with which settings, what stands around it.

Parsing only: options become a `SystemChoice`; what cannot go together is told. `--system FILE` is
where they begin; what is given beside it comes on top.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pgdyno.cli.options import F
from pgdyno.cli.server_settings import PRIVATE, server_settings_of, server_settings_options
from pgdyno.errors import InvalidInput
from pgdyno.experiment import levels, system_levels
from pgdyno.experiment.system_file import read_system_file
from pgdyno.model import PoolerChoice, StandbyChoice, SystemChoice
from pgdyno.servers.remote import take_password

# Option → how a person writes it, of those that describe a private server.
_PRIVATE = {
    "system": "--system",
    "pg": "--pg",
    **PRIVATE,
    "data": "--data",
    "tcp": "--tcp",
    "port": "--port",
    "server_cpus": "--server-cpus",
    "standbys": "--standbys",
    "pooler": "--pooler",
}


class Cpus(click.ParamType[tuple[int, ...]]):
    """CPUs as the kernel lists them: `0-3,8`."""

    name = "0-3,8"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Their numbers; a click usage error for anything else."""
        if isinstance(value, tuple):
            return value
        try:
            return levels.cpus(value)
        except InvalidInput as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)


class Standbys(click.ParamType[tuple[tuple[StandbyChoice, ...], int | None]]):
    """`2 synchronous`: the standbys, and how many of them a commit waits for."""

    name = "N [synchronous]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[StandbyChoice, ...], int | None]:
        """Standbys and quorum; a click usage error for anything else."""
        if isinstance(value, tuple):
            return value
        try:
            return system_levels.standbys(value)
        except InvalidInput as error:
            self.fail(error.message + (f"; {error.hint}" if error.hint else ""), param, ctx)


class Pooler(click.ParamType[PoolerChoice]):
    """`pgbouncer transaction`: what stands in front, with its mode."""

    name = "none|KIND [MODE]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> PoolerChoice:
        """What stands in front; a click usage error for anything else."""
        if isinstance(value, PoolerChoice):
            return value
        try:
            return system_levels.pooler(value)  # type: ignore[return-value]  # None: of `none`.
        except InvalidInput as error:
            self.fail(error.message + (f"; {error.hint}" if error.hint else ""), param, ctx)


def system_options(command: F) -> F:
    """The system under test, in the order of the help text."""
    options = (
        click.option(
            "--system",
            type=click.Path(dir_okay=False, exists=True, path_type=Path),
            metavar="FILE",
            help="The system as a TOML file; options beside it come on top.",
        ),
        click.option(
            "--pg",
            metavar="VERSION|build:NAME|git:REF|PATH",
            help="PostgreSQL to start; default: the newest. A missing version is fetched.",
        ),
        server_settings_options,
        click.option(
            "--data",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Keep the private server's data here, and use it again.",
        ),
        click.option(
            "--tcp", is_flag=True, help="Private server on loopback TCP, with a password."
        ),
        click.option("--port", type=click.IntRange(1, 65535), help="Its port (with --tcp)."),
        click.option("--server-cpus", type=Cpus(), help="CPUs of the private server."),
        click.option(
            "--standbys",
            type=Standbys(),
            metavar="N",
            help="Standbys that stream from it: 2, '2 synchronous', '2 with slots'.",
        ),
        click.option(
            "--pooler",
            type=Pooler(),
            metavar="KIND",
            help="In front of it: pgpool, haproxy, pgbouncer, 'pgbouncer transaction'.",
        ),
        click.option("--dsn", help="Your server instead: conninfo or URI."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def system_of(options: dict[str, Any]) -> SystemChoice:
    """The system asked for; what cannot go together is told at once."""
    if options["dsn"]:
        private = [words for name, words in _PRIVATE.items() if options.get(name)]
        if private:
            raise InvalidInput(
                f"{', '.join(private)} cannot be used with --dsn",
                hint="they describe a private server; --dsn uses yours as it is",
            )
        return SystemChoice(dsn=take_password(options["dsn"]))
    if options["port"] and not options["tcp"]:
        raise InvalidInput("--port needs --tcp", hint="without it there is only a socket")
    data = options["data"]
    standbys, quorum = options["standbys"] or ((), None)
    given = SystemChoice(
        pg=options["pg"],
        **server_settings_of(options),
        data=str(data.absolute()) if data else None,
        tcp=options["tcp"],
        port=options["port"],
        cpus=options["server_cpus"] or (),
        standbys=standbys,
        quorum=quorum,
        pooler=options["pooler"],
    )
    if options["system"] is None:
        return given
    written = read_system_file(options["system"])
    for line in written.notices:
        click.echo(f"pgdyno: {line}", err=True)
    return _on_top(written.system, given)


def engine_cpus_of(options: dict[str, Any]) -> tuple[int, ...]:
    """CPUs of the load generator: those given, else those of the system's file; empty: any."""
    if options["engine_cpus"] or options["system"] is None:
        return options["engine_cpus"] or ()
    return read_system_file(options["system"]).engine_cpus


def _on_top(written: SystemChoice, given: SystemChoice) -> SystemChoice:
    """A file's system with what was given beside it."""
    usual = SystemChoice()
    changed = {
        name: getattr(given, name)
        for name in SystemChoice.model_fields
        if getattr(given, name) != getattr(usual, name)
    }
    return written.model_copy(update={**changed, "settings": written.settings | given.settings})
