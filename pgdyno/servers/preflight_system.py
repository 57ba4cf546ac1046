"""A system that is only described: what would be refused or would mislead, before it is started.

The server program itself says which values its settings would have (`postgres -C`), so nothing is
started. `judge_system` is pure; `describe_private` and `describe_theirs` ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.hosts.base import Command, Host
from pgdyno.model import HostFacts, SystemChoice
from pgdyno.queries import query_for
from pgdyno.servers import preflight
from pgdyno.servers.base import ENGINE, POOLER, PRIMARY, SERVER
from pgdyno.servers.binaries import Installation
from pgdyno.servers.findings import Finding
from pgdyno.servers.initdb_options import check_initdb
from pgdyno.servers.settings import check_settings, installed_locales, understood
from pgdyno.units import format_bytes, parse_bytes

_DEADLINE_S: Final = 20.0
_PAGE_BYTES: Final = 8192
_WANTED_EXTENSIONS: Final = {
    "pg_prewarm": "data are read into shared buffers by queries instead",
    "pg_stat_statements": "the server's own statistics of statements are not to be had",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFacts:
    """What is known of a system before it runs.

    `extensions`: those the server could create. `problems`: what the server or initdb refuses.
    """

    version: str
    limits: preflight.ConnectionLimits
    shared_buffers_bytes: int
    extensions: frozenset[str]
    private: bool
    notices: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    monitors: bool = True
    creates: bool = True
    tables: int = 0


def judge_system(
    choice: SystemChoice,
    facts: SystemFacts,
    host: HostFacts,
    *,
    connections: int,
    cpus: Mapping[str, tuple[int, ...]],
) -> Iterator[Finding]:
    """Findings about a system under `connections` clients and observers.

    `cpus`: role → CPUs, with `engine`; empty: any.
    """
    yield Finding(section="system", name="PostgreSQL", value=facts.version)
    for line in facts.problems:
        yield _finding("refused", "settings or initdb", "problem", line)
    if facts.notices:
        told = "\n".join(line.removeprefix("setting ") for line in facts.notices)
        yield _finding("settings", f"{len(facts.notices)} translated", "consider", told)
    soft, hard = preflight.open_files()
    allowed = preflight.Facts(
        limits=facts.limits, open_files_soft=soft, open_files_hard=hard, private=facts.private
    )
    value = f"{connections} needed, max_connections = {facts.limits.max_connections}"
    yield from _from_problems(
        "connections", value, preflight.check_connections(connections, allowed)
    )
    most_bytes = min(choice.limits.memory_bytes or host.memory_bytes, host.memory_bytes)
    value = f"shared_buffers = {format_bytes(facts.shared_buffers_bytes)}"
    value += f" of {format_bytes(most_bytes)}"
    if facts.private:
        wrong = preflight.check_memory(facts.shared_buffers_bytes, most_bytes)
        yield from _from_problems("memory", value, wrong)
        there = tuple(range(host.cpus))
        yield from _judge_cpus(cpus, there)
    for name, otherwise in _WANTED_EXTENSIONS.items():
        if name not in facts.extensions:
            yield _finding("extension", f"no {name}", "consider", otherwise)
    yield from _judge_rights(facts)


def roles(choice: SystemChoice, engine: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Role → the CPUs it is pinned to, of a system and the load generator."""
    found = {PRIMARY if choice.standbys else SERVER: choice.cpus, ENGINE: engine}
    found |= {standby.name: standby.cpus for standby in choice.standbys}
    if choice.pooler is not None:
        found[POOLER] = choice.pooler.cpus
    return found


def server_roles(choice: SystemChoice) -> tuple[str, ...]:
    """The roles of the servers, the one that takes the writes first."""
    primary = PRIMARY if choice.standbys else SERVER
    return (primary, *(standby.name for standby in choice.standbys))


def describe_private(choice: SystemChoice, installation: Installation, host: Host) -> SystemFacts:
    """What a private server would be, asked of its program."""
    problems: list[str] = []
    notices: tuple[str, ...] = ()
    settings = dict(choice.settings)
    try:
        check_initdb(choice.initdb, installation.version_num, installed_locales(host))
    except InvalidInput as error:
        problems += error.message.splitlines()
    try:
        check_settings(settings, installation, host, None)
        told = understood(settings, installation.version_num, host)
        settings, notices = told.settings, told.notices
    except InvalidInput as error:
        problems += error.message.splitlines()
        settings = {}

    def value(name: str) -> str:
        return _in_force(name, settings, installation, host)

    reserved = value("reserved_connections") if installation.version_num >= 160000 else "0"
    return SystemFacts(
        version=installation.version,
        limits=preflight.ConnectionLimits(
            max_connections=int(value("max_connections")),
            superuser_reserved_connections=int(value("superuser_reserved_connections")),
            reserved_connections=int(reserved),
            in_use=0,
            superuser=True,
            role_limit=-1,
            database_limit=-1,
        ),
        shared_buffers_bytes=_pages(value("shared_buffers")),
        extensions=frozenset(installation.extensions),
        private=True,
        notices=notices,
        problems=tuple(problems),
    )


def describe_theirs(conninfo: str, password: str | None) -> SystemFacts:
    """What a running server allows us; `PgdynoError` where it does not let us in."""
    limits = preflight.gather(conninfo, password, private=False).limits
    try:
        with psycopg.connect(
            conninfo, password=password, row_factory=dict_row, connect_timeout=10
        ) as connection:
            query = query_for("our_rights", connection.info.server_version)
            row: dict[str, Any] | None = connection.execute(query.encode()).fetchone()
    except psycopg.Error as error:
        raise PgdynoError(f"cannot ask the server what we may do: {error}") from error
    if row is None:
        raise PgdynoError("cannot ask the server what we may do: it returned no row")
    return SystemFacts(
        version=str(row["version"]),
        limits=limits,
        shared_buffers_bytes=int(row["shared_buffers_bytes"]),
        extensions=frozenset(row["extensions"]),
        private=False,
        monitors=bool(row["monitors"]),
        creates=bool(row["creates"]),
        tables=int(row["tables"]),
    )


def _judge_cpus(cpus: Mapping[str, tuple[int, ...]], there: tuple[int, ...]) -> Iterator[Finding]:
    value = "; ".join(
        f"{role} {','.join(map(str, wanted)) if wanted else 'any'}" for role, wanted in cpus.items()
    )
    wrong = preflight.check_cpus(cpus, there)
    if wrong:
        yield from _from_problems("placement", value, wrong)
        return
    shared = preflight.shared_cpus(cpus, there)
    advice = "; ".join(shared) + ": pin them apart with --server-cpus and --engine-cpus"
    yield Finding(
        section="system",
        name="placement",
        value=value,
        verdict="consider" if shared else "fine",
        advice=advice if shared else None,
    )


def _judge_rights(facts: SystemFacts) -> Iterator[Finding]:
    if not facts.monitors:
        advice = "some counters of other sessions stay hidden: GRANT pg_monitor to our role"
        yield _finding("rights", "no pg_monitor", "consider", advice)
    if not facts.creates:
        advice = "our role cannot make tables here: GRANT CREATE ON DATABASE, or another database"
        yield _finding("rights", "no CREATE", "problem", advice)
    if facts.tables:
        advice = "pgdyno touches only tables that it made, and measures beside the others"
        yield _finding("database", f"{facts.tables} tables are there", "consider", advice)


def _finding(name: str, value: str, verdict: Any, advice: str) -> Finding:
    return Finding(section="system", name=name, value=value, verdict=verdict, advice=advice)


def _from_problems(name: str, value: str, problems: list[str]) -> Iterator[Finding]:
    """A finding that is fine where there is no problem, else one for each."""
    if not problems:
        yield Finding(section="system", name=name, value=value, verdict="fine")
    for line in problems:
        yield _finding(name, value, "problem", line)


def _in_force(
    name: str, settings: Mapping[str, str], installation: Installation, host: Host
) -> str:
    """The value that a setting would have, by the server program itself."""
    # Only with -C as the first word root may ask, too.
    words = [str(installation.bin_dir / "postgres"), "-C", name, "-D", "/"]
    words += ["-c", "config_file=/dev/null"]
    for each, value in settings.items():
        words += ["-c", f"{each}={value}"]
    done = host.run(Command(words=words, environment={"LC_ALL": "C"}), deadline_s=_DEADLINE_S)
    if done.status != 0:
        said = (done.error.strip().splitlines() or ["it did not say why"])[-1]
        raise PgdynoError(f"cannot ask '{words[0]}' for {name}: {said}")
    return done.output.strip()


def _pages(value: str) -> int:
    """Bytes of a value that is a number of pages where it has no unit."""
    return int(value) * _PAGE_BYTES if value.isdigit() else parse_bytes(value)
