"""`pgdyno doctor`: what would disturb, mislead or refuse a measurement here; it changes nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pgdyno.cli.options import COUNT, json_option
from pgdyno.cli.system_options import Cpus, system_of, system_options
from pgdyno.errors import EXIT_CHECK_FAILED, PgdynoError
from pgdyno.hosts.base import Host
from pgdyno.hosts.local import Local
from pgdyno.model import HostFacts, SystemChoice
from pgdyno.observers.environment import host_facts, storage_facts
from pgdyno.reports.doctor import doctor_document, render_doctor
from pgdyno.servers import preflight_system, storage_rates
from pgdyno.servers.binaries import Installation, choose, find_installations
from pgdyno.servers.findings import (
    Finding,
    judge_kernel,
    judge_limits,
    judge_machine,
    judge_storage,
)
from pgdyno.servers.folders import temporary_root
from pgdyno.servers.machine import look_at
from pgdyno.servers.privileges import server_user

# Sessions of the observers and of the checks, beside the clients.
_OTHER_CONNECTIONS = 6


@click.command(short_help="Tell what would disturb or refuse a measurement.")
@system_options
@click.option("-c", "--clients", type=COUNT, default=16, show_default=True, help="Clients.")
@click.option("--engine-cpus", type=Cpus(), help="CPUs of the load generator.")
@click.option(
    "--storage",
    "measured",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Measure there how fast flushes are, about 20 s, and the clock.",
)
@json_option
def doctor(*, measured: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Look at this machine, and at the system that the options describe as for `pgdyno run`.

    Shows what is found beside the values of published benchmarks, with advice where it matters.
    Nothing is started but the server program to judge its settings, and nothing is changed. Exit
    code 3: a run would be refused.

    \b
      pgdyno doctor
      pgdyno doctor --pg 15 --profile osc-2014 --clients 400
      pgdyno doctor --dsn "host=db.example dbname=bench" --clients 300
      pgdyno doctor --storage /srv/data
    """  # noqa: D301  (click reads the escape)
    choice, host = system_of(options), Local()
    machine, facts = look_at(host), host_facts(host)
    found = find_installations(host)
    findings = [
        *judge_machine(facts, machine),
        *judge_kernel(facts, machine),
        *judge_limits(machine),
        *_storage(choice, host, measured, found),
        *_installations(found),
        *_system(choice, (host, facts, found), options),
    ]
    if as_json:
        click.echo(json.dumps(doctor_document(findings), indent=2))
    else:
        render_doctor(findings, Console())
    if any(finding.verdict == "problem" for finding in findings):
        sys.exit(EXIT_CHECK_FAILED)


def _storage(
    choice: SystemChoice, host: Host, measured: tuple[Path, ...], found: tuple[Installation, ...]
) -> Iterator[Finding]:
    """The folders that the system would use, and those to be measured."""
    folders = []
    if choice.dsn is None:
        folders = [_existing(Path(choice.data or temporary_root(host, server_user())))]
    given = (choice.storage.wal, choice.storage.temporary, *choice.storage.tablespaces.values())
    folders += [Path(each) for each in given if each is not None] + list(measured)
    yield from judge_storage([storage_facts(host, each) for each in dict.fromkeys(folders)])
    if not measured:
        return
    program = storage_rates.program_of("pg_test_fsync", host, None, found)
    for folder in measured:
        rates = storage_rates.flushes_per_s(host, program, folder, None)
        fastest = ", ".join(f"{method} {rate:,.0f}/s" for method, rate in rates.items())
        yield Finding(section="storage", name="flushes of 8 kB", value=f"{folder}: {fastest}")
    timing = storage_rates.program_of("pg_test_timing", host, None, found)
    read_ns = storage_rates.clock_read_ns(host, timing)
    if read_ns is not None:
        slow = read_ns > 200
        yield Finding(
            section="storage",
            name="clock",
            value=f"{read_ns:.0f} ns a reading",
            verdict="consider" if slow else "fine",
            advice="EXPLAIN ANALYZE and track_io_timing read it all the time" if slow else None,
        )


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there already."""
    while not folder.exists():
        folder = folder.parent
    return folder


def _installations(found: tuple[Installation, ...]) -> Iterator[Finding]:
    for one in found:
        yield Finding(
            section="postgresql",
            name=one.version,
            value=f"{one.origin}, {one.bin_dir}",
            verdict="fact" if one.problem is None else "consider",
            advice=one.problem,
        )
    if not found:
        yield Finding(
            section="postgresql", name="none", value="none was found", verdict="consider",
            advice="install one, or fetch one with pgdyno servers fetch 18",
        )  # fmt: skip


def _system(
    choice: SystemChoice,
    here: tuple[Host, HostFacts, tuple[Installation, ...]],
    options: dict[str, Any],
) -> Iterator[Finding]:
    """Findings about the system, or why nothing can be said of it."""
    host, facts, found = here
    try:
        if choice.dsn is not None:
            known = preflight_system.describe_theirs(choice.dsn, os.environ.get("PGPASSWORD"))
        else:
            installation = choose(choice.pg, found, host)
            known = preflight_system.describe_private(choice, installation, host)
    except PgdynoError as error:
        yield Finding(
            section="system", name="PostgreSQL", value="cannot be judged", verdict="problem",
            advice=error.message + (f" ({error.hint})" if error.hint else ""),
        )  # fmt: skip
        return
    yield from preflight_system.judge_system(
        choice,
        known,
        facts,
        connections=options["clients"] + _OTHER_CONNECTIONS,
        cpus=preflight_system.roles(choice, options["engine_cpus"] or ()),
    )
