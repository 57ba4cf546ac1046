"""What would stop a measurement after an hour of loading, told before it.

Connections, open files, disk, memory, CPUs.

The decisions are pure and return problems as sentences that name the setting, the value it needs
and whether the server must be restarted. They change nothing: what is measured is the person's.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.rows import class_row

from pgdyno.errors import PgdynoError
from pgdyno.queries import query_for
from pgdyno.units import format_bytes, format_count

_CONNECT_TIMEOUT_S = 10
# Files of a process besides its connections: plan, results, libraries, a reactor per thread.
_OTHER_FILES = 64
_DISK_RESERVE_SHARE = 0.05
# Processes, catalogues and the kernel need some, too.
_SHARED_BUFFERS_MOST_SHARE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """A row of `connection_limits.sql`. Limits of role and database: -1 is none."""

    max_connections: int
    superuser_reserved_connections: int
    reserved_connections: int
    in_use: int
    superuser: bool
    role_limit: int
    database_limit: int

    @property
    def reserved(self) -> int:
        """Connections that our role may not use; a superuser may use them all."""
        if self.superuser:
            return 0
        return self.superuser_reserved_connections + self.reserved_connections


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a server and this machine allow. `private`: the server is ours and made for this run."""

    limits: ConnectionLimits
    open_files_soft: int
    open_files_hard: int
    private: bool


def gather(conninfo: str, password: str | None, *, private: bool) -> Facts:
    """Ask the server and this process for their limits. Raises `PgdynoError` without an answer."""
    try:
        with psycopg.connect(
            conninfo,
            password=password,
            connect_timeout=_CONNECT_TIMEOUT_S,
            row_factory=class_row(ConnectionLimits),
        ) as connection:
            query = query_for("connection_limits", connection.info.server_version)
            limits = connection.execute(query.encode()).fetchone()
    except psycopg.Error as error:
        raise PgdynoError(f"cannot ask the server for its limits: {error}") from error
    if limits is None:
        raise PgdynoError("cannot ask the server for its limits: it returned no row")
    soft, hard = open_files()
    return Facts(limits=limits, open_files_soft=soft, open_files_hard=hard, private=private)


def open_files() -> tuple[int, int]:
    """How many files this process may open, and how many it could allow itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _finite(soft), _finite(hard)


def check_connections(needed: int, facts: Facts) -> list[str]:
    """Problems of opening `needed` connections at once (clients and observers). Pure."""
    problems, limits = [], facts.limits
    room = limits.max_connections - limits.reserved - limits.in_use
    if needed > room:
        value = needed + limits.reserved + limits.in_use
        taken = f"{limits.reserved} are reserved, {limits.in_use} in use"
        how = (
            f"give --set max_connections={value}"
            if facts.private
            else f"set max_connections to {value} and restart the server"
        )
        problems.append(
            f"{format_count(needed)} connections are needed, "
            f"but max_connections = {limits.max_connections} "
            f"leaves {max(room, 0)} ({taken}): {how}"
        )
    # PostgreSQL does not hold superusers to the limits of role and database.
    if not limits.superuser:
        for limit, words in (
            (limits.role_limit, "ALTER ROLE … CONNECTION LIMIT"),
            (limits.database_limit, "ALTER DATABASE … CONNECTION LIMIT"),
        ):
            if 0 <= limit < needed:
                problems.append(
                    f"{needed} connections are needed, but {words} allows {limit}: raise it "
                    f"to {needed} (no restart)"
                )
    files_needed = needed + _OTHER_FILES
    if files_needed > facts.open_files_soft:
        how = f"run ulimit -n {files_needed} in this shell"
        if files_needed > facts.open_files_hard:
            how += f" as root (the hard limit is {format_count(facts.open_files_hard)})"
        problems.append(
            f"{format_count(needed)} connections need {format_count(files_needed)} open files, but "
            f"the limit of this process is {format_count(facts.open_files_soft)} (RLIMIT_NOFILE): "
            f"{how}"
        )
    return problems


def check_disk(expected_bytes: int, free_bytes: int) -> list[str]:
    """Problems of writing `expected_bytes` where `free_bytes` are left; 5 % stay in reserve. Pure.

    >>> check_disk(10 * 1024**3, 20 * 1024**3)
    []
    >>> check_disk(10 * 1024**3, 1024**3)
    ['the data will take about 10.0 GB, but 1.0 GB of disk are free: give --data on a larger one']
    """
    if expected_bytes <= free_bytes * (1 - _DISK_RESERVE_SHARE):
        return []
    return [
        f"the data will take about {format_bytes(expected_bytes)}, "
        f"but {format_bytes(free_bytes)} of disk are free: give --data on a larger one"
    ]


def check_memory(shared_buffers_bytes: int, memory_bytes: int) -> list[str]:
    """Problems of shared buffers in the memory that a server may use. Pure.

    >>> check_memory(1024**3, 8 * 1024**3)
    []
    """
    if shared_buffers_bytes < memory_bytes * _SHARED_BUFFERS_MOST_SHARE:
        return []
    return [
        f"shared_buffers = {format_bytes(shared_buffers_bytes)} do not fit into "
        f"{format_bytes(memory_bytes)} of memory: the kernel would kill the server; "
        "set it to a quarter of the memory"
    ]


def check_cpus(cpus: Mapping[str, tuple[int, ...]], there: tuple[int, ...]) -> list[str]:
    """Problems of roles pinned to CPUs that are not there. Pure.

    >>> check_cpus({"server": (0, 9)}, (0, 1))
    ['server cannot run on CPU 9: there are 0, 1']
    """
    return [
        f"{role} cannot run on CPU {', '.join(str(cpu) for cpu in missing)}: "
        f"there are {', '.join(str(cpu) for cpu in there)}"
        for role, wanted in cpus.items()
        if (missing := [cpu for cpu in wanted if cpu not in there])
    ]


def shared_cpus(cpus: Mapping[str, tuple[int, ...]], there: tuple[int, ...]) -> list[str]:
    """Roles of the system that compete with the load generator for CPUs, one line each. Pure.

    Who is not pinned may run anywhere.

    >>> shared_cpus({"engine": (1,), "server": (0,)}, (0, 1))
    []
    """
    engine = set(cpus.get("engine") or there)
    found = []
    for role, wanted in cpus.items():
        if role == "engine":
            continue
        common = sorted(engine & set(wanted or there))
        if common:
            names = ", ".join(str(cpu) for cpu in common)
            found.append(f"{role} and load generator share CPU {names}")
    return found


def free_bytes(folder: Path) -> int:
    """Bytes an ordinary account can still write where `folder` lies, or will lie."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        facts = os.statvfs(place)
    except OSError as error:
        raise PgdynoError(
            f"cannot ask for the free space of '{folder}': {error.strerror}"
        ) from error
    return facts.f_bavail * facts.f_frsize


def _finite(limit: int) -> int:
    """A limit as a number that can be compared: without limit is more than anybody needs."""
    return 2**31 - 1 if limit == resource.RLIM_INFINITY else limit
