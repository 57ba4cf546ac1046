"""Options for how a private server is set: settings, how it is made, where files lie, limits.

Parsing only: they become fields of a `SystemChoice`. A profile comes first, then a file, then
single settings; the later wins.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from pgdyno.cli.options import CPU_TIME, SIZE, Assignment, F
from pgdyno.errors import InvalidInput
from pgdyno.model import Limits, StorageChoice
from pgdyno.servers.initdb_options import initdb_choice
from pgdyno.servers.profiles import profiles, settings_from

# Option → how a person writes it, of those that describe a private server.
PRIVATE: Final = {
    "profile": "--profile",
    "settings_file": "--settings",
    "settings": "--set",
    "initdb": "--initdb",
    "wal_folder": "--wal-folder",
    "temporary_folder": "--temporary-folder",
    "tablespaces": "--tablespace",
    "storage_facts": "--storage-facts",
    "cpu_limit": "--cpu-limit",
    "memory_limit_bytes": "--memory-limit",
}


def server_settings_options(command: F) -> F:
    """How a private server is set, in the order of the help text."""
    options = (
        click.option(
            "--profile",
            metavar="NAME",
            help=f"A published configuration: {', '.join(profiles())}.",
        ),
        click.option(
            "--settings",
            "settings_file",
            type=click.Path(dir_okay=False, exists=True, path_type=Path),
            metavar="FILE",
            help="Server settings as in postgresql.conf; old names are translated.",
        ),
        click.option(
            "--set",
            "settings",
            type=Assignment(),
            multiple=True,
            metavar="NAME=VALUE",
            help="Server setting of the private server.",
        ),
        click.option(
            "--initdb",
            type=Assignment(),
            multiple=True,
            metavar="NAME=VALUE",
            help="How the cluster is made: checksums, wal_segment_size, locale, encoding, "
            "locale_provider, icu_locale.",
        ),
        _folder_options,
        _limit_options,
    )
    for option in reversed(options):
        command = option(command)
    return command


def _folder_options(command: F) -> F:
    folder = click.Path(file_okay=False, exists=True, path_type=Path)
    options = (
        click.option("--wal-folder", type=folder, metavar="DIR", help="WAL in a folder there."),
        click.option(
            "--temporary-folder", type=folder, metavar="DIR", help="Temporary files there."
        ),
        click.option(
            "--tablespace",
            "tablespaces",
            type=Assignment(),
            multiple=True,
            metavar="NAME=DIR",
            help="A tablespace; --set default_tablespace=NAME puts the tables there.",
        ),
        click.option(
            "--storage-facts",
            is_flag=True,
            help="Measure flushes and the clock before the trial, about 20 s a device.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _limit_options(command: F) -> F:
    options = (
        click.option(
            "--cpu-limit",
            type=CPU_TIME,
            metavar="CPUS",
            help="CPU time the server gets at most: 0.5, 2 (a control group).",
        ),
        click.option(
            "--memory-limit",
            "memory_limit_bytes",
            type=SIZE,
            metavar="SIZE",
            help="Memory it gets at most, with its page cache (a control group).",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def server_settings_of(options: dict[str, Any]) -> dict[str, Any]:
    """Fields of a `SystemChoice`; a line on standard error for each setting that is left out.

    Raises `InvalidInput` for what cannot be.
    """
    found = settings_from(options["profile"], options["settings_file"], dict(options["settings"]))
    for line in found.notices:
        click.echo(f"pgdyno: {line}", err=True)
    return {
        "settings": found.settings,
        "initdb": initdb_choice(dict(options["initdb"])),
        "storage": StorageChoice(
            wal=_absolute(options["wal_folder"]),
            temporary=_absolute(options["temporary_folder"]),
            measure=options["storage_facts"],
            tablespaces={name: _folder(name, place) for name, place in options["tablespaces"]},
        ),
        "limits": Limits(
            cpu_share=options["cpu_limit"], memory_bytes=options["memory_limit_bytes"]
        ),
    }


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser().absolute())


def _folder(name: str, place: str) -> str:
    """A folder that exists; a person mistypes it before anything is made."""
    path = Path(place).expanduser().absolute()
    if not path.is_dir():
        raise InvalidInput(
            f"tablespace '{name}': '{place}' is not a folder",
            hint="it must exist; pgdyno makes a folder of its own in it",
        )
    return str(path)
