"""A cluster's postmaster from started to stopped: one context, as often as wanted.

It is our own child, not pg_ctl's, runs in a session of its own (Ctrl-C does not reach it) and dies
with the lab. Nothing here sets a parameter that the person did not name, but for where the server
listens.
"""

from __future__ import annotations

import contextlib
import secrets
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command, Host, Process
from pgdyno.servers import initdb, orphans, replication, trouble
from pgdyno.servers.base import Server
from pgdyno.servers.cluster import LOOPBACK, Cluster
from pgdyno.servers.settings import render_settings, understood
from pgdyno.servers.shielding import uninterrupted
from pgdyno.servers.standby import BaseBackup
from pgdyno.servers.storage import create_tablespaces

Ending = Literal["clean", "at once"]

_START_DEADLINE_S = 60.0
_RECOVERY_DEADLINE_S = 600.0
_FAST_STOP_DEADLINE_S = 120.0
_IMMEDIATE_STOP_DEADLINE_S = 15.0
_POLL_S = 0.02
# The person's own PG* variables are for clients; some of them change what a server starts with.
_UNWANTED = ("PGDATA", "PGPORT", "PGOPTIONS", "PGDATESTYLE", "PGTZ", "PGCLIENTENCODING")


@contextlib.contextmanager
def running(
    cluster: Cluster,
    settings: Mapping[str, str],
    host: Host,
    ledger: orphans.Ledger,
    *,
    ending: Ending,
) -> Iterator[Server]:
    """The cluster's server with these settings, stopped at the end.

    `clean` stops with a checkpoint, so that the files are whole by themselves; `at once` leaves
    that to whoever starts it again. Raises `PgdynoError` with the log's last lines when it does not
    start.
    """
    write_settings(cluster, settings, host)
    process: Process | None = None
    try:
        process = _start(cluster, host, ending)
        ledger.with_server(cluster.entry, process.pid)
        server = _await(cluster, host, process)
        if cluster.used_before:
            replication.drop_slots(server)  # Of an earlier life that was killed.
        create_tablespaces(cluster.storage, server)
        yield server
    finally:
        with uninterrupted():
            _stop(process, ending)


def write_settings(cluster: Cluster, settings: Mapping[str, str], host: Host) -> None:
    """Write the person's settings where the server reads them at its start, or when told to."""
    account = initdb.Account(host=host, user=cluster.choice.user)
    here = understood(settings, cluster.choice.installation.version_num, host).settings
    here = cluster.storage.settings | here
    account.write(cluster.data / initdb.SETTINGS_FILE, render_settings(here))


def _start(cluster: Cluster, host: Host, ending: Ending) -> Process:
    """Start the postmaster itself, not through pg_ctl: it is then our child and dies with us."""
    choice = cluster.choice
    words = ["env", *(word for name in _UNWANTED for word in ("-u", name))]
    words += [str(choice.installation.bin_dir / "postgres"), "-D", str(cluster.data)]
    for name, value in (
        ("listen_addresses", LOOPBACK if choice.tcp else ""),
        ("port", str(cluster.port)),
        ("unix_socket_directories", _list_item(str(cluster.sockets))),
    ):
        words += ["-c", f"{name}={value}"]
    return host.start(
        Command(
            words=words,
            user=choice.user,
            folder=Path("/"),
            environment={"LC_ALL": "C"},
            cpus=choice.cpus,
            cgroups=cluster.groups,
            death_signal=signal.SIGINT if ending == "clean" else signal.SIGQUIT,
        ),
        log=cluster.log,
        pipe=False,
    )


def _list_item(text: str) -> str:
    """A folder inside a list setting: quoted where a plain one would be misread."""
    plain = all(letter.isalnum() or letter in "/._-+" for letter in text)
    return text if plain else '"' + text.replace('"', '""') + '"'


def _await(cluster: Cluster, host: Host, process: Process) -> Server:
    """The server when it answers; raises `PgdynoError` when it ends or the deadline passes."""
    recovers = cluster.used_before or isinstance(cluster.choice.origin, BaseBackup)
    deadline_s = _RECOVERY_DEADLINE_S if recovers else _START_DEADLINE_S
    end_s = time.monotonic() + deadline_s
    conninfo = make_conninfo(
        host=str(cluster.sockets), port=cluster.port, user=initdb.SUPERUSER, dbname="postgres"
    )
    while True:
        status = process.status()
        if status is not None:
            raise _not_started(cluster, f"it ended with status {status}")
        try:
            with psycopg.connect(conninfo, connect_timeout=2, autocommit=True) as connection:
                server = _describe(cluster, host, connection)
                break
        except psycopg.OperationalError as error:
            if time.monotonic() >= end_s:
                raise _not_started(cluster, f"no answer within {deadline_s:g} s") from error
        time.sleep(_POLL_S)
    return replace(server, postmaster_pid=process.pid)


def _describe(
    cluster: Cluster, host: Host, connection: psycopg.Connection[tuple[object, ...]]
) -> Server:
    """What the running server is; sets a new password where it listens on loopback."""
    choice = cluster.choice
    password, host_address = None, str(cluster.sockets)
    if choice.tcp:
        host_address = LOOPBACK
        if isinstance(choice.origin, BaseBackup):
            password = choice.origin.password
        else:
            password = _set_password(connection)
    return Server(
        conninfo=make_conninfo(
            host=host_address, port=cluster.port, user=initdb.SUPERUSER, dbname="postgres"
        ),
        password=password,
        version_num=connection.info.server_version,
        version=(connection.info.parameter_status("server_version") or "").split(" ")[0],
        host_name=host.name,
        private=True,
        bin_dir=choice.installation.bin_dir,
        data=cluster.data,
        sockets=cluster.sockets,
        log=cluster.log,
        initdb_options=initdb.options_of(host, cluster.data),
    )


def _set_password(connection: psycopg.Connection[tuple[object, ...]]) -> str:
    """Give the superuser a new password; only its verifier crosses, so that no log can hold it."""
    password = secrets.token_urlsafe(24)
    method = b"scram-sha-256" if connection.info.server_version >= 100000 else b"md5"
    verifier = connection.pgconn.encrypt_password(
        password.encode(), initdb.SUPERUSER.encode(), method
    )
    connection.execute(
        sql.SQL("ALTER ROLE {} PASSWORD {}").format(
            sql.Identifier(initdb.SUPERUSER), sql.Literal(verifier.decode())
        )
    )
    return password


def _not_started(cluster: Cluster, reason: str) -> PgdynoError:
    """The error for a server that did not start, with what it said last."""
    installation = cluster.choice.installation
    said = trouble.last_lines(cluster.log, count=8)
    return PgdynoError(
        f"postgresql {installation.version} did not start: {reason}"
        + "".join(f"\n  | {line}" for line in said),
        hint="what it said last stands above; see --set, --port and --data"
        if said
        else f"its log is empty; try {installation.bin_dir}/postgres by hand",
    )


def _stop(process: Process | None, ending: Ending) -> None:
    """Stop the postmaster and wait for it; what does not obey is killed, by its number."""
    if process is None or process.status() is not None:
        return
    steps = [(signal.SIGQUIT, _IMMEDIATE_STOP_DEADLINE_S), (signal.SIGKILL, 10.0)]
    if ending == "clean":
        steps.insert(0, (signal.SIGINT, _FAST_STOP_DEADLINE_S))
    for number, deadline_s in steps:
        process.send(number)
        with contextlib.suppress(PgdynoError):
            process.wait(deadline_s=deadline_s)
            break
