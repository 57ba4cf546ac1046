"""Examines a machine and a described system before anything is measured: all findings, in order.

Wires what the host's observers and the servers' own programs say to the judges, which are pure.
Nothing is started but programs that judge a configuration and end, and nothing is changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgdyno.contract import Protocol
from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Host
from pgdyno.model import HostFacts, SystemChoice
from pgdyno.observers.environment import host_facts, storage_facts
from pgdyno.servers import preflight_system, storage_rates
from pgdyno.servers.binaries import Installation, choose, find_installations
from pgdyno.servers.findings import (
    Finding,
    judge_clock,
    judge_installations,
    judge_kernel,
    judge_limits,
    judge_machine,
    judge_pooler,
    judge_storage,
)
from pgdyno.servers.folders import temporary_root
from pgdyno.servers.machine import look_at
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.poolers.fitness import Demand, fit
from pgdyno.servers.poolers.judging import judge
from pgdyno.servers.privileges import server_user

# Sessions of the observers and of the checks, beside the clients.
_OTHER_CONNECTIONS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to examine. `measured`: folders whose flushes are to be measured, 20 s each."""

    system: SystemChoice
    clients: int
    protocol: Protocol
    engine_cpus: tuple[int, ...] = ()
    measured: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Here:
    """Where it is examined."""

    host: Host
    facts: HostFacts
    found: tuple[Installation, ...]


def examine(question: Question, host: Host) -> list[Finding]:
    """All findings by section; `PgdynoError` where the machine itself cannot be read."""
    machine = look_at(host)
    here = _Here(host=host, facts=host_facts(host), found=find_installations(host))
    return [
        *judge_machine(here.facts, machine),
        *judge_kernel(here.facts, machine),
        *judge_limits(machine),
        *_storage(question, here),
        *judge_installations(here.found),
        *_system(question, here),
    ]


def _storage(question: Question, here: _Here) -> Iterator[Finding]:
    """The folders that the system would use, and those to be measured."""
    choice, host = question.system, here.host
    folders = []
    if choice.dsn is None:
        folders = [_existing(Path(choice.data or temporary_root(host, server_user())))]
    given = (choice.storage.wal, choice.storage.temporary, *choice.storage.tablespaces.values())
    folders += [Path(each) for each in given if each is not None] + list(question.measured)
    yield from judge_storage([storage_facts(host, each) for each in dict.fromkeys(folders)])
    if not question.measured:
        return
    program = storage_rates.program_of("pg_test_fsync", host, None, here.found)
    for folder in question.measured:
        rates = storage_rates.flushes_per_s(host, program, folder, None)
        shown = ", ".join(f"{method} {rate:.0f}" for method, rate in rates.items())
        value = f"{folder}: {shown}"
        yield Finding(section="storage", name="flushes of 8 kB a second", value=value)
    timing = storage_rates.program_of("pg_test_timing", host, None, here.found)
    yield from judge_clock(storage_rates.clock_read_ns(host, timing))


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there already."""
    while not folder.exists():
        folder = folder.parent
    return folder


def _system(question: Question, here: _Here) -> Iterator[Finding]:
    """Findings about the system, or why nothing can be said of it."""
    choice, sessions = question.system, question.clients
    cpus = preflight_system.roles(choice, question.engine_cpus)
    try:
        known = _describe(choice, here)
        if choice.pooler is not None:
            servers = preflight_system.server_roles(choice)
            judged = judge(choice.pooler, servers, here.host, Ledger())
            fitted = fit(judged.capacity, _demand(question, known))
            sessions = fitted.sessions
            yield from judge_pooler(judged, fitted)
    except PgdynoError as error:
        advice = error.message + (f" ({error.hint})" if error.hint else "")
        yield Finding(
            section="system", name="refused", value="cannot be judged further",
            verdict="problem", advice=advice,
        )  # fmt: skip
        return
    yield from preflight_system.judge_system(
        choice, known, here.facts, connections=sessions + _OTHER_CONNECTIONS, cpus=cpus
    )


def _describe(choice: SystemChoice, here: _Here) -> preflight_system.SystemFacts:
    if choice.dsn is not None:
        return preflight_system.describe_theirs(choice.dsn, os.environ.get("PGPASSWORD"))
    installation = choose(choice.pg, here.found, here.host)
    return preflight_system.describe_private(choice, installation, here.host)


def _demand(question: Question, known: preflight_system.SystemFacts) -> Demand:
    """What the load asks of a pooler; what its scripts send is known to a run only."""
    return Demand(
        clients=question.clients,
        enough=None,
        protocol=question.protocol,
        scripts={},
        max_connections=known.limits.max_connections,
    )
