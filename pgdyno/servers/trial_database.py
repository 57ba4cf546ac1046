"""A copy of a database for one trial: `CREATE DATABASE … TEMPLATE`, dropped when the trial ends.

The copy's name says whose it is (machine, boot, process), so that the next lab finds and drops
what a killed one left, on a server where nothing else may be kept. Only databases with such a name,
of our own role and of a process that is gone are ever dropped.

Files are copied rather than written through WAL (`strategy file_copy`, PostgreSQL 15; before, there
was nothing else): WAL of a whole database would push the trial towards its next checkpoint. Since
18 the server can share blocks where its file system can (`file_copy_method`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgdyno.errors import PgdynoError
from pgdyno.queries import query_for
from pgdyno.servers import orphans, processes
from pgdyno.servers.base import Server
from pgdyno.servers.orphans import Here
from pgdyno.servers.processes import ProcessIdentity
from pgdyno.servers.shielding import uninterrupted

_CONNECT_DEADLINE_S = 10
_DROP_DEADLINE_S = 15.0
_POLL_S = 0.1
# An empty database takes about 8 MB, one with some extensions not much more.
_EMPTY_BYTES = 32 * 1024**2
_STRATEGY_VERSION_NUM = 150000
_CLONE_VERSION_NUM = 180000
# Where to stand while a database is copied or dropped, the likeliest first.
_ELSEWHERE = ("postgres", "template1")
_NAME = re.compile(r"pgdyno_trial_([0-9a-f]{6})_([0-9a-f]{6})_([0-9a-f]{6})_(\d+)_(\d+)")

_Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDatabase:
    """The server with the copy as its database; what the copy took, and how large it is."""

    server: Server
    bytes: int
    duration_s: float


@contextlib.contextmanager
def trial_database(server: Server, notice: Callable[[str], None]) -> Iterator[TrialDatabase]:
    """A copy of the server's database as it is now, dropped in the end.

    Nobody may be connected to the original. Raises `PgdynoError` where the server refuses.
    """
    origin = str(conninfo_to_dict(server.conninfo)["dbname"])
    owner = processes.identify(os.getpid())
    if owner is None:
        raise PgdynoError("cannot read /proc, which is needed to know one's own processes")
    name = own_name(orphans.here(), owner)
    began_s = time.monotonic()
    try:
        with _elsewhere(server, origin) as connection:
            _sweep(connection, notice)
            _create(connection, name, origin, _database_settings(server))
            row = connection.execute("select pg_database_size(%s)", [name]).fetchone()
    except psycopg.Error as error:
        raise PgdynoError(
            f"database '{origin}' cannot be copied: {_first_line(error)}",
            hint="nobody else may be connected to it; or choose another way with reset",
        ) from error
    copy = replace(server, conninfo=make_conninfo(server.conninfo, dbname=name))
    taken_s = time.monotonic() - began_s
    try:
        yield TrialDatabase(server=copy, bytes=row[0] if row else 0, duration_s=taken_s)
    finally:
        try:
            with uninterrupted(), _elsewhere(server, origin) as connection:
                _drop(connection, name)
        except (psycopg.Error, PgdynoError) as error:
            notice(f"database '{name}' is left behind: {_first_line(error)}")


def obstacle(server: Server, own_bytes: int) -> str | None:
    """Why the server's database cannot be copied for each trial; None: nothing is in the way.

    `own_bytes` is the size of the workload's data: a database that holds more of others than of
    ours is not copied, for that is not what somebody expects of a measurement.
    """
    query = query_for("copying_rights", server.version_num).encode()
    origin = str(conninfo_to_dict(server.conninfo)["dbname"])
    try:
        with _connect(server, origin) as connection:
            row = connection.execute(query).fetchone()
        with _elsewhere(server, origin):
            pass
    except (psycopg.Error, PgdynoError) as error:
        return _first_line(error)
    may_create, may_copy, others, database_bytes = row or (False, False, 0, 0)
    if not may_create:
        return "our role may not make databases (CREATEDB)"
    if not may_copy:
        return f"our role does not own database '{origin}'"
    if others:
        return f"{others} other sessions are connected to database '{origin}'"
    if database_bytes > 2 * own_bytes + _EMPTY_BYTES:
        return f"database '{origin}' holds more than the workload's data"
    return None


def own_name(place: Here, owner: ProcessIdentity) -> str:
    """Name of the copy that a process makes: no other process ever has the same.

    >>> own_name(Here(machine="m", boot_id="b", pid_namespace="n"),
    ...          ProcessIdentity(pid=42, start_ticks=7))
    'pgdyno_trial_62c66a_3e23e8_1b16b1_42_7'
    """
    parts = (place.machine, place.boot_id, place.pid_namespace)
    marks = "_".join(hashlib.sha256(part.encode()).hexdigest()[:6] for part in parts)
    return f"pgdyno_trial_{marks}_{owner.pid}_{owner.start_ticks}"


def is_orphan(name: str, place: Here, lives: Callable[[ProcessIdentity], bool]) -> bool:
    """Whether the process that a copy's name tells of is gone. Pure.

    What another machine made, or another container of this one, cannot be judged from here.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    owner = ProcessIdentity(pid=int(match[4]), start_ticks=int(match[5]))
    here = _NAME.fullmatch(own_name(place, owner))
    if here is None or here[1] != match[1]:
        return False
    if here[2] != match[2]:
        return True
    return here[3] == match[3] and not lives(owner)


def _sweep(connection: _Connection, notice: Callable[[str], None]) -> None:
    """Drop the copies of labs that are gone."""
    query = query_for("trial_databases", connection.info.server_version).encode()
    for (name,) in connection.execute(query).fetchall():
        if is_orphan(name, orphans.here(), processes.is_alive):
            _drop(connection, name)
            notice(f"database '{name}', left behind by a pgdyno that is gone, was dropped")


def _create(
    connection: _Connection, name: str, origin: str, settings: list[tuple[bool, str, str]]
) -> None:
    """Copy the database, and what its settings bring to every session."""
    _drop(connection, name)
    version_num = connection.info.server_version
    if version_num >= _CLONE_VERSION_NUM:
        with contextlib.suppress(psycopg.errors.InvalidParameterValue):
            connection.execute("set file_copy_method = clone")
    strategy = sql.SQL(" strategy file_copy" if version_num >= _STRATEGY_VERSION_NUM else "")
    copy, template = sql.Identifier(name), sql.Identifier(origin)
    connection.execute(sql.SQL("create database {} template {}").format(copy, template) + strategy)
    for own_role, setting, value in settings:
        # By way of our session, since lists of names would be quoted as one name.
        connection.execute("select set_config(%s, %s, false)", [setting, value])
        whose = sql.SQL(
            "alter role current_user in database {}" if own_role else "alter database {}"
        )
        change = sql.SQL(" set {} from current").format(sql.Identifier(*setting.split(".")))
        connection.execute(whose.format(copy) + change)


def _database_settings(server: Server) -> list[tuple[bool, str, str]]:
    """(only for our role, name, value) of what the database brings to a session."""
    query = query_for("database_settings", server.version_num).encode()
    with _connect(server, str(conninfo_to_dict(server.conninfo)["dbname"])) as connection:
        return connection.execute(query).fetchall()


def _drop(connection: _Connection, name: str) -> None:
    """Drop a copy, if there is one, with whoever is still connected to it."""
    end_s = time.monotonic() + _DROP_DEADLINE_S
    while True:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name]
        )
        try:
            connection.execute(sql.SQL("drop database if exists {}").format(sql.Identifier(name)))
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > end_s:
                raise
            time.sleep(_POLL_S)
        else:
            return


def _elsewhere(server: Server, origin: str) -> _Connection:
    """A connection to another database of the server, from which this one can be copied."""
    refusal: psycopg.Error | None = None
    for name in _ELSEWHERE:
        if name == origin:
            continue
        try:
            return _connect(server, name)
        except psycopg.OperationalError as error:
            refusal = error
    raise PgdynoError(f"no connection beside database '{origin}': {_first_line(refusal)}")


def _connect(server: Server, database: str) -> _Connection:
    extra: dict[str, Any] = {} if server.password is None else {"password": server.password}
    return psycopg.connect(
        make_conninfo(server.conninfo, dbname=database),
        autocommit=True,
        connect_timeout=_CONNECT_DEADLINE_S,
        application_name="pgdyno",
        **extra,
    )


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0]
