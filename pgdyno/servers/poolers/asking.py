"""Asks a running pooler how it is: its clients, its servers, its own counters.

    with open_statistics(pooler) as asked:
        answer = asked.ask()

pgpool answers SHOW commands to any client, so asking takes one of its clients' places; PgBouncer
has a console of its own, HAProxy a socket for commands. What one does not count is None.
"""

from __future__ import annotations

import csv
import io
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, Self

import psycopg
from psycopg.rows import dict_row

from pgdyno.errors import PgdynoError
from pgdyno.servers.base import Pooler

_DEADLINE_S: Final = 5
_BLOCK_BYTES: Final = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """A pooler as its clients meet it. Times are sums over all clients."""

    clients: int
    clients_waiting: int | None = None
    server_connections: int | None = None
    server_connections_busy: int | None = None
    transactions: int | None = None
    statements: int | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    wait_time_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A server as the pooler sees it, by its role. `reads` are statements that only read."""

    role: str
    up: bool | None = None
    connections: int | None = None
    sessions: int | None = None
    statements: int | None = None
    reads: int | None = None
    writes: int | None = None
    errors: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All of one moment."""

    front: Front
    backends: tuple[Behind, ...]


class Statistics(Protocol):
    """An open way to ask one pooler."""

    def ask(self) -> Answer:
        """How it is now; `PgdynoError`, `OSError` or `LookupError` where it does not say."""
        ...

    def close(self) -> None:
        """End it."""
        ...

    def __enter__(self) -> Self:
        """Itself."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        ...


def open_statistics(pooler: Pooler) -> Statistics:
    """Begin to ask a pooler; raises `PgdynoError` where that does not work within five seconds."""
    if pooler.statistics is None:
        raise PgdynoError(f"{pooler.kind} has no way to be asked")
    match pooler.kind:
        case "pgpool":
            return _Pgpool(pooler, pooler.statistics)
        case "pgbouncer":
            return _Pgbouncer(pooler, pooler.statistics)
        case "haproxy":
            return _Haproxy(pooler, pooler.statistics)
        case _:
            raise PgdynoError(f"nobody knows how to ask {pooler.kind}")


def ask_once(pooler: Pooler) -> Answer:
    """One answer."""
    with open_statistics(pooler) as asked:
        return asked.ask()


def pgpool_settings(pooler: Pooler) -> dict[str, str]:
    """The settings in force, as a running pgpool shows them."""
    assert pooler.statistics is not None
    with _Pgpool(pooler, pooler.statistics) as asked:
        return {row["item"]: row["value"] for row in asked.show(b"PGPOOL SHOW ALL")}


class _Session:
    """A way to ask that is a session of PostgreSQL's protocol."""

    def __init__(self, pooler: Pooler, conninfo: str) -> None:
        self._pooler = pooler
        try:
            self._connection = psycopg.connect(
                conninfo,
                password=pooler.password,
                autocommit=True,
                connect_timeout=_DEADLINE_S,
                prepare_threshold=None,
                row_factory=dict_row,
                cursor_factory=psycopg.ClientCursor,
            )
        except psycopg.Error as error:
            raise PgdynoError(f"cannot ask {pooler.kind}: {_first_line(error)}") from error

    def show(self, command: bytes) -> list[dict[str, Any]]:
        try:
            cursor = self._connection.execute(command)
            rows = cursor.fetchall()
            # pgpool 4.3 answers some commands twice, the first time without rows.
            while cursor.nextset():
                rows = cursor.fetchall()
        except psycopg.Error as error:
            said = _first_line(error)
            raise PgdynoError(f"{self._pooler.kind} does not answer: {said}") from error
        return rows

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Pgpool(_Session):
    """Counts statements by kind and server (from 4.2); of processes it knows what they do."""

    def ask(self) -> Answer:
        processes = self.show(b"SHOW POOL_PROCESSES")
        nodes = self.show(b"SHOW POOL_BACKEND_STATS")
        return pgpool_answer(processes, nodes, self._pooler.backends)


class _Pgbouncer(_Session):
    """Counts transactions and statements of a database; and how long clients waited."""

    def ask(self) -> Answer:
        pools, counts = self.show(b"SHOW POOLS"), self.show(b"SHOW STATS")
        return pgbouncer_answer(pools, counts, self._pooler.backends)


class _Haproxy:
    """Counts connections and bytes: it knows nothing of statements."""

    def __init__(self, pooler: Pooler, path: str) -> None:
        self._pooler, self._path = pooler, path
        self.ask()

    def ask(self) -> Answer:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(_DEADLINE_S)
            try:
                asked.connect(self._path)
                asked.sendall(b"show stat\n")
                blocks = list(iter(lambda: asked.recv(_BLOCK_BYTES), b""))
            except OSError as error:
                raise PgdynoError(f"haproxy does not answer: {error.strerror or error}") from error
        return haproxy_answer(b"".join(blocks).decode(errors="replace"), self._pooler.backends)

    def close(self) -> None:
        """Each question has its own connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing is open."""


def pgpool_answer(
    processes: Sequence[Mapping[str, Any]],
    nodes: Sequence[Mapping[str, Any]],
    roles: Sequence[str],
) -> Answer:
    """From rows of SHOW POOL_PROCESSES and SHOW POOL_BACKEND_STATS. Pure.

    The one who asks is a client too, and is left out. A server's connections are better counted by
    the server itself.
    """
    idle = "wait for connection"
    clients = sum(str(row.get("status", "")).lower() != idle for row in processes)
    backends = []
    for row in nodes:
        counts = {name: int(value) for name, value in row.items() if name.endswith("_cnt")}
        writes = sum(counts.get(f"{word}_cnt", 0) for word in ("insert", "update", "delete"))
        errors = sum(counts.pop(f"{word}_cnt", 0) for word in ("panic", "fatal", "error"))
        backends.append(
            Behind(
                role=roles[int(row["node_id"])],
                up=row["status"] in {"up", "waiting"},
                statements=sum(counts.values()),
                reads=counts.get("select_cnt", 0),
                writes=writes,
                errors=errors,
            )
        )
    statements = sum(one.statements or 0 for one in backends)
    front = Front(clients=max(clients - 1, 0), statements=statements)
    return Answer(front=front, backends=tuple(backends))


def pgbouncer_answer(
    pools: Sequence[Mapping[str, Any]], counts: Sequence[Mapping[str, Any]], roles: Sequence[str]
) -> Answer:
    """From rows of SHOW POOLS and SHOW STATS, without those of its console. Pure."""
    served = [row for row in pools if row["database"] != "pgbouncer"]
    counted = [row for row in counts if row["database"] != "pgbouncer"]

    def now(*names: str) -> int:
        return sum(int(row[name]) for row in served for name in names)

    def total(name: str) -> int:
        return sum(int(row[name]) for row in counted)

    busy = now("sv_active")
    held = busy + now("sv_idle", "sv_used", "sv_tested", "sv_login")
    front = Front(
        clients=now("cl_active", "cl_waiting"),
        clients_waiting=now("cl_waiting"),
        server_connections=held,
        server_connections_busy=busy,
        transactions=total("total_xact_count"),
        statements=total("total_query_count"),
        received_bytes=total("total_received"),
        sent_bytes=total("total_sent"),
        wait_time_us=total("total_wait_time"),
    )
    behind = Behind(role=roles[0], connections=held, statements=front.statements)
    return Answer(front=front, backends=(behind,))


def haproxy_answer(text: str, roles: Sequence[str]) -> Answer:
    """From the table that `show stat` prints. Pure; raises `PgdynoError` where it is none."""
    rows = list(csv.DictReader(io.StringIO(text.lstrip("# "))))
    by_name = {row["svname"]: row for row in rows if row.get("svname")}
    if not {"FRONTEND", "BACKEND", *roles} <= by_name.keys():
        raise PgdynoError(f"haproxy says '{text.strip()[:80]}' instead of its statistics")
    front, back = by_name["FRONTEND"], by_name["BACKEND"]
    behind = []
    for role in roles:
        row = by_name[role]
        behind.append(
            Behind(
                role=role,
                up=row["status"].startswith(("UP", "no check")),
                connections=int(row["scur"]),
                sessions=int(row["stot"]),
                errors=int(row["econ"]) + int(row["eresp"]),
            )
        )
    return Answer(
        front=Front(
            clients=int(front["scur"]),
            clients_waiting=int(back["qcur"]),
            server_connections=sum(one.connections or 0 for one in behind),
            server_connections_busy=None,
            received_bytes=int(front["bin"]),
            sent_bytes=int(front["bout"]),
        ),
        backends=tuple(behind),
    )


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
