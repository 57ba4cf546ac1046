"""A private server from nothing to stopped and removed: one context manager.

Its socket lies in a folder of mode 0700, where everybody who can enter is trusted; it listens on
loopback only when asked, with a generated password. It runs in a session of its own (Ctrl-C does
not reach it), dies with the lab, and is recorded in the ledger before anything is made. Nothing
here sets a parameter that the person did not name, but for where the server listens.
"""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.hosts.base import Command, Host, Process
from pgdyno.servers import folders, initdb, orphans, trouble
from pgdyno.servers.base import Server
from pgdyno.servers.binaries import Installation
from pgdyno.servers.settings import render_settings

_DEFAULT_PORT = 5432
_LOOPBACK = "127.0.0.1"
_START_DEADLINE_S = 60.0
_RECOVERY_DEADLINE_S = 600.0
_FAST_STOP_DEADLINE_S = 120.0
_IMMEDIATE_STOP_DEADLINE_S = 15.0
_POLL_S = 0.02
# The person's own PG* variables are for clients; some of them change what a server starts with.
_UNWANTED = ("PGDATA", "PGPORT", "PGOPTIONS", "PGDATESTYLE", "PGTZ", "PGCLIENTENCODING")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoice:
    """What kind of private server. `data` None: temporary, removed; `port` None: a free one.

    `cpus` are those it and all its backends may use; empty: any.
    """

    installation: Installation
    settings: Mapping[str, str]
    data: Path | None
    tcp: bool
    port: int | None
    user: str | None
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Folders and port of one server. `made`: folders that are ours alone, removed in the end."""

    base: Path
    data: Path
    sockets: Path
    log: Path
    port: int
    made: tuple[Path, ...]


@contextlib.contextmanager
def private_server(choice: ClusterChoice, host: Host, ledger: orphans.Ledger) -> Iterator[Server]:
    """A running server of its own; stopped at the end, and removed unless its data are kept.

    Raises `InvalidInput` for a data folder or port that cannot be used, `PgdynoError` with the
    log's last lines when the server does not start.
    """
    identifier = secrets.token_hex(4)
    state = "new"
    if choice.data is not None:
        facts = folders.data_folder_facts(choice.data)
        state = folders.judge_data_folder(choice.data, facts, choice.installation.major)
    places = _places(choice, host, identifier)
    entry = orphans.new_entry(
        identifier,
        folders=places.made,
        data=places.data,
        program=choice.installation.bin_dir / "postgres",
        keep=choice.data is not None,
    )
    ledger.record(entry)
    process: Process | None = None
    try:
        _prepare(choice, host, places, reuse=state == "reuse")
        process = _start(choice, host, places)
        entry = ledger.with_server(entry, process.pid)
        deadline_s = _RECOVERY_DEADLINE_S if state == "reuse" else _START_DEADLINE_S
        yield _await(choice, host, places, process, deadline_s=deadline_s)
    finally:
        _stop(process, keep=entry.keep)
        if orphans.end_processes(entry) and not orphans.remove_folders(entry):
            ledger.forget(entry)


def _places(choice: ClusterChoice, host: Host, identifier: str) -> _Places:
    """Decide on folders and port; nothing is made yet."""
    name = orphans.FOLDER_PREFIX + identifier
    root = folders.temporary_root(host, choice.user)
    base, sockets = root / name, folders.socket_folder(root, name)
    made = dict.fromkeys([base, sockets])
    if choice.data is not None:
        made[choice.data / name] = None
    return _Places(
        base=base,
        data=base / "data" if choice.data is None else choice.data,
        sockets=sockets,
        log=base / "server.log",
        port=_port(choice),
        made=tuple(made),
    )


def _port(choice: ClusterChoice) -> int:
    """The port to use; raises `InvalidInput` when the one asked for is taken."""
    if not choice.tcp:
        return choice.port or _DEFAULT_PORT
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the server does: a port in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_LOOPBACK, choice.port or 0))
        except OSError as error:
            raise InvalidInput(
                f"port {choice.port} on {_LOOPBACK} cannot be used: {error.strerror}",
                hint="give another --port, or none for a free one",
            ) from error
        return int(probe.getsockname()[1])


def _prepare(choice: ClusterChoice, host: Host, places: _Places, *, reuse: bool) -> None:
    """Make folders, the cluster where there is none, and the file with the person's settings."""
    account = initdb.Account(host=host, user=choice.user)
    folders.make_private_folders(host, choice.user, [places.base, places.sockets])
    if reuse:
        folders.check_kept_folder(host, choice.user, places.data)
    elif choice.data is None:
        initdb.make_cluster(account, choice.installation, places.data)
    else:
        folders.prepare_data_folder(host, choice.user, places.data)
        initdb.make_kept_cluster(account, choice.installation, places.data / places.base.name)
    account.write(places.data / initdb.SETTINGS_FILE, render_settings(choice.settings))


def _start(choice: ClusterChoice, host: Host, places: _Places) -> Process:
    """Start the postmaster itself, not through pg_ctl: it is then our child and dies with us."""
    words = ["env", *(word for name in _UNWANTED for word in ("-u", name))]
    words += [str(choice.installation.bin_dir / "postgres"), "-D", str(places.data)]
    for name, value in (
        ("listen_addresses", _LOOPBACK if choice.tcp else ""),
        ("port", str(places.port)),
        ("unix_socket_directories", _list_item(str(places.sockets))),
    ):
        words += ["-c", f"{name}={value}"]
    kept = choice.data is not None
    return host.start(
        Command(
            words=words,
            user=choice.user,
            folder=Path("/"),
            environment={"LC_ALL": "C"},
            cpus=choice.cpus,
            death_signal=signal.SIGINT if kept else signal.SIGQUIT,
        ),
        log=places.log,
        pipe=False,
    )


def _list_item(text: str) -> str:
    """A folder inside a list setting: quoted where a plain one would be misread."""
    plain = all(letter.isalnum() or letter in "/._-+" for letter in text)
    return text if plain else '"' + text.replace('"', '""') + '"'


def _await(
    choice: ClusterChoice, host: Host, places: _Places, process: Process, *, deadline_s: float
) -> Server:
    """The server when it answers; raises `PgdynoError` when it ends or the deadline passes."""
    end_s = time.monotonic() + deadline_s
    conninfo = make_conninfo(
        host=str(places.sockets), port=places.port, user=initdb.SUPERUSER, dbname="postgres"
    )
    while True:
        status = process.status()
        if status is not None:
            raise _not_started(choice, places, f"it ended with status {status}")
        try:
            with psycopg.connect(conninfo, connect_timeout=2, autocommit=True) as connection:
                server = _describe(choice, host, places, connection)
                break
        except psycopg.OperationalError as error:
            if time.monotonic() >= end_s:
                raise _not_started(choice, places, f"no answer within {deadline_s:g} s") from error
        time.sleep(_POLL_S)
    return replace(server, postmaster_pid=process.pid)


def _describe(
    choice: ClusterChoice,
    host: Host,
    places: _Places,
    connection: psycopg.Connection[tuple[object, ...]],
) -> Server:
    """What the running server is; sets a new password where it listens on loopback."""
    password, host_address = None, str(places.sockets)
    if choice.tcp:
        password, host_address = secrets.token_urlsafe(24), _LOOPBACK
        # Only the verifier crosses, so that no log of statements can hold the password.
        method = b"scram-sha-256" if connection.info.server_version >= 100000 else b"md5"
        verifier = connection.pgconn.encrypt_password(
            password.encode(), initdb.SUPERUSER.encode(), method
        )
        connection.execute(
            sql.SQL("ALTER ROLE {} PASSWORD {}").format(
                sql.Identifier(initdb.SUPERUSER), sql.Literal(verifier.decode())
            )
        )
    return Server(
        conninfo=make_conninfo(
            host=host_address, port=places.port, user=initdb.SUPERUSER, dbname="postgres"
        ),
        password=password,
        version_num=connection.info.server_version,
        version=(connection.info.parameter_status("server_version") or "").split(" ")[0],
        host_name=host.name,
        private=True,
        bin_dir=choice.installation.bin_dir,
        data=places.data,
        log=places.log,
        initdb_options=initdb.options_of(host, places.data),
    )


def _not_started(choice: ClusterChoice, places: _Places, reason: str) -> PgdynoError:
    """The error for a server that did not start, with what it said last."""
    said = trouble.last_lines(places.log, count=8)
    return PgdynoError(
        f"postgresql {choice.installation.version} did not start: {reason}"
        + "".join(f"\n  | {line}" for line in said),
        hint="what it said last stands above; see --set, --port and --data"
        if said
        else f"its log is empty; try {choice.installation.bin_dir}/postgres by hand",
    )


def _stop(process: Process | None, *, keep: bool) -> None:
    """Stop the postmaster and wait for it.

    Kept data get a fast shutdown with its checkpoint; data about to be removed an immediate one.
    What does not obey is killed, by its number.
    """
    if process is not None and process.status() is None:
        steps = [(signal.SIGQUIT, _IMMEDIATE_STOP_DEADLINE_S), (signal.SIGKILL, 10.0)]
        if keep:
            steps.insert(0, (signal.SIGINT, _FAST_STOP_DEADLINE_S))
        for number, deadline_s in steps:
            process.send(number)
            with contextlib.suppress(PgdynoError):
                process.wait(deadline_s=deadline_s)
                break
