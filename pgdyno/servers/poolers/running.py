"""A pooler from folders to removed: recorded before it is made, started, found healthy, stopped."""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgdyno.errors import InvalidInput, PgdynoError, Problems
from pgdyno.hosts.base import Command, Host, Process
from pgdyno.model import Limits, PoolerChoice
from pgdyno.servers import folders, limits, orphans, trouble
from pgdyno.servers.base import POOLER, Pooler, Server, System
from pgdyno.servers.initdb import Account
from pgdyno.servers.poolers.asking import ask_once, pgpool_settings
from pgdyno.servers.poolers.base import LOOPBACK, Backend, Kind, Plan
from pgdyno.servers.poolers.kinds import KINDS
from pgdyno.servers.poolers.pgpool import differences
from pgdyno.servers.poolers.planning import backend_roles, settings_for
from pgdyno.servers.poolers.programs import Program, find_program
from pgdyno.servers.privileges import server_user
from pgdyno.servers.shielding import uninterrupted

_PORT: Final = 5432
_START_DEADLINE_S: Final = 30.0
_STOP_DEADLINE_S: Final = 10.0
_POLL_S: Final = 0.02
_LOG: Final = "pooler.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lodging:
    """Where one pooler's files lie, on a host, of an account; `groups` limit it."""

    host: Host
    ledger: orphans.Ledger
    folder: Path
    entry: orphans.Entry
    user: str | None
    cpus: tuple[int, ...] = ()
    groups: tuple[Path, ...] = ()

    @property
    def log(self) -> Path:
        """What it writes while it runs."""
        return self.folder / _LOG

    def write(self, texts: Mapping[str, str]) -> None:
        """Write its files, readable by its account alone."""
        account = Account(host=self.host, user=self.user)
        for name, text in texts.items():
            account.write(self.folder / name, text)


@contextlib.contextmanager
def lodging(
    program: Program,
    host: Host,
    ledger: orphans.Ledger,
    *,
    cpus: tuple[int, ...] = (),
    limited: Limits | None = None,
) -> Iterator[Lodging]:
    """A private folder, recorded in the ledger before it is made; removed with what runs in it."""
    user, identifier = server_user(), secrets.token_hex(4)
    name = orphans.FOLDER_PREFIX + identifier
    folder = folders.socket_folder(folders.temporary_root(host, user), name)
    groups = () if limited is None else limits.group_folders(limited, name)
    entry = orphans.new_entry(
        identifier, folders=(*groups, folder), data=folder, program=program.path, keep=False
    )
    ledger.record(entry)
    try:
        folders.make_private_folders(host, user, [folder])
        if limited is not None:
            limits.make_groups(groups, limited)
        yield Lodging(
            host=host,
            ledger=ledger,
            folder=folder,
            entry=entry,
            user=user,
            cpus=cpus,
            groups=groups,
        )
    finally:
        with uninterrupted():
            if orphans.end_processes(entry) and not orphans.remove_folders(entry):
                ledger.forget(entry)


@contextlib.contextmanager
def in_front(
    system: System, choice: PoolerChoice, host: Host, ledger: orphans.Ledger
) -> Iterator[System]:
    """The system with its pooler, which answers through every server, until the context ends.

    Raises `InvalidInput` for settings that cannot be, `PgdynoError` for what does not start.
    """
    kind = KINDS[choice.kind]
    program = find_program(kind.facts, host)
    roles = backend_roles(choice, list(system.servers))
    settings = settings_for(choice, kind.facts, program).settings
    with lodging(program, host, ledger, cpus=choice.cpus, limited=choice.limits) as place:
        known = conninfo_to_dict(system.primary.conninfo)
        tcp = system.primary.password is not None
        plan = Plan(
            program=program,
            mode=choice.mode,
            settings=settings,
            backends=tuple(_backend(role, system.servers[role]) for role in roles),
            folder=place.folder,
            port=_free_port(choice.port) if tcp else choice.port or _PORT,
            tcp=tcp,
            user=str(known["user"]),
            database=str(known["dbname"]),
            password=system.primary.password,
        )
        with running(kind, plan, place) as process:
            pooler = _describe(kind, plan, place, process)
            _await_health(pooler, process)
            _refuse_differences(pooler, settings)
            cpus = {POOLER: choice.cpus} if choice.cpus else {}
            yield replace(
                system,
                poolers={**system.poolers, POOLER: pooler},
                cpus={**system.cpus, **cpus},
            )


@contextlib.contextmanager
def running(kind: Kind, plan: Plan, place: Lodging) -> Iterator[Process]:
    """The program with its files, started and in the end stopped; it need not answer yet."""
    place.write(kind.files(plan))
    process: Process | None = None
    try:
        process = place.host.start(
            Command(
                words=kind.words(plan),
                user=place.user,
                folder=place.folder,
                environment={"LC_ALL": "C"},
                cpus=place.cpus,
                cgroups=place.groups,
                death_signal=kind.death_signal,
            ),
            log=place.log,
            pipe=False,
        )
        place.ledger.with_server(place.entry, process.pid)
        yield process
    finally:
        with uninterrupted():
            _stop(process)


def _stop(process: Process | None) -> None:
    """Ask it to end at once and wait; what does not obey is killed, by its number."""
    if process is None or process.status() is not None:
        return
    # pgpool: fast. PgBouncer and HAProxy: nothing of theirs needs more than their end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        process.send(number)
        with contextlib.suppress(PgdynoError):
            process.wait(deadline_s=_STOP_DEADLINE_S)
            return


def _backend(role: str, server: Server) -> Backend:
    known = conninfo_to_dict(server.conninfo)
    return Backend(role=role, host=str(known["host"]), port=int(str(known["port"])))


def _free_port(asked: int | None) -> int:
    """The port to listen on; raises `InvalidInput` when the one asked for is taken."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, asked or 0))
        except OSError as error:
            raise InvalidInput(
                f"port {asked} of the pooler cannot be used on {LOOPBACK}: {error.strerror}",
                hint="give another, or none for a free one",
            ) from error
        return int(probe.getsockname()[1])


def _describe(kind: Kind, plan: Plan, place: Lodging, process: Process) -> Pooler:
    return Pooler(
        kind=kind.facts.kind,
        version=plan.program.shown,
        conninfo=make_conninfo(
            host=LOOPBACK if plan.tcp else str(plan.folder),
            port=plan.port,
            user=plan.user,
            dbname=plan.database,
        ),
        host_name=place.host.name,
        password=plan.password,
        pid=process.pid,
        log=place.log,
        statistics=kind.statistics(plan),
        backends=tuple(backend.role for backend in plan.backends),
    )


def _await_health(pooler: Pooler, process: Process) -> None:
    """Wait until a session comes through and every server behind it is up; else `PgdynoError`."""
    end_s = time.monotonic() + _START_DEADLINE_S
    while True:
        status = process.status()
        if status is not None:
            raise _not_started(pooler, f"it ended with status {status}")
        unwell = _unwell(pooler)
        if unwell is None:
            return
        if time.monotonic() >= end_s:
            raise _not_started(pooler, f"after {_START_DEADLINE_S:g} s {unwell}")
        time.sleep(_POLL_S)


def _unwell(pooler: Pooler) -> str | None:
    """Why it cannot be used yet; None: it can."""
    try:
        with psycopg.connect(
            pooler.conninfo, password=pooler.password, connect_timeout=5, autocommit=True
        ) as connection:
            connection.execute("SELECT 1")
        down = [one.role for one in ask_once(pooler).backends if one.up is False]
    except (psycopg.Error, OSError, PgdynoError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        return f"it does not answer: {said[0]}"
    return f"{', '.join(down)} did not answer it" if down else None


def _refuse_differences(pooler: Pooler, settings: Mapping[str, str]) -> None:
    """Raise `Problems` for values that the program took for others without a word."""
    if pooler.kind == "pgpool" and settings:
        problems = differences(settings, pgpool_settings(pooler))
        if problems:
            raise Problems(problems)


def _not_started(pooler: Pooler, reason: str) -> PgdynoError:
    """The error for one that did not start, with what it said last."""
    said = () if pooler.log is None else trouble.last_lines(pooler.log, count=8)
    return PgdynoError(
        f"{pooler.kind} {pooler.version} did not start: {reason}"
        + "".join(f"\n  | {line}" for line in said),
        hint="what it said last stands above; see its settings" if said else None,
    )
