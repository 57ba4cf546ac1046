"""A pooler's own statistics: its clients, its connections to the servers, who got the statements.

What a kind does not count is empty: pgpool counts statements by server, PgBouncer transactions and
how long clients waited, HAProxy connections and bytes (of a connection when it ends). What every
server got is also in its own tables, whatever stands in front. Asking pgpool takes one of its
clients' places.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Final

from pgdyno.errors import PgdynoError
from pgdyno.observers.base import Column, Observer, Row, Table, Value
from pgdyno.servers.base import Pooler
from pgdyno.servers.poolers.asking import Answer, Statistics, open_statistics

CLIENTS: Final = "clients"
"""The side of a pooler that its clients see."""


def _gauge(name: str, unit: str, about: str) -> Column:
    return Column(name=name, unit=unit, kind="gauge", about=about)


def _counter(name: str, unit: str, about: str) -> Column:
    return Column(name=name, unit=unit, kind="counter", about=about)


POOLER = Table(
    name="pooler",
    about="a pooler: its side of the clients, and each server behind it",
    columns=(
        Column(
            name="side", unit="", kind="label", about="'clients' or a server's role", type="text"
        ),
        _gauge("connections", "connections", "of clients, the observer left out; or to the server"),
        _gauge("waiting", "clients", "of them, waiting for a server connection"),
        _gauge("server_connections", "connections", "to all servers"),
        _gauge("busy", "connections", "of them, at work for a client"),
        _gauge("up", "servers", "1: the server is used, 0: it is not"),
        _counter("transactions", "transactions", "passed on (PgBouncer)"),
        _counter("statements", "statements", "passed on (pgpool, PgBouncer)"),
        _counter("reads", "statements", "of them SELECT (pgpool)"),
        _counter("writes", "statements", "of them INSERT, UPDATE, DELETE (pgpool)"),
        _counter("sessions", "sessions", "ever opened to the server (HAProxy)"),
        _counter("errors", "errors", "that the server answered with, or in reaching it"),
        _counter("received_bytes", "bytes", "from clients (HAProxy: of ended connections)"),
        _counter("sent_bytes", "bytes", "to clients (HAProxy: of ended connections)"),
        _counter("wait_time_us", "µs", "of all clients, for a server connection (PgBouncer)"),
    ),
)


@dataclass(slots=True, kw_only=True)
class PoolerObserver:
    """Asks one pooler, by a connection of its own."""

    pooler: Pooler
    resolution_s: float | None = 1.0
    table: Table = POOLER
    _asked: Statistics | None = field(default=None, init=False, repr=False)

    def begin(self) -> None:
        """Connect; `PgdynoError` where it does not answer."""
        self._asked = open_statistics(self.pooler)

    def sample(self) -> Iterable[Row]:
        """The rows of this moment; asks anew after an answer that did not come."""
        if self._asked is None:
            self._asked = open_statistics(self.pooler)
        try:
            answer = self._asked.ask()
        except (PgdynoError, OSError):
            self.end()
            raise
        return rows_of(answer)

    def end(self) -> None:
        """Disconnect."""
        if self._asked is not None:
            self._asked.close()
            self._asked = None


def rows_of(answer: Answer) -> list[Row]:
    """An answer as rows: the clients' side first, then the servers. Pure."""
    front = answer.front
    rows: list[dict[str, Value]] = [
        {
            "side": CLIENTS,
            "connections": front.clients,
            "waiting": front.clients_waiting,
            "server_connections": front.server_connections,
            "busy": front.server_connections_busy,
            "transactions": front.transactions,
            "statements": front.statements,
            "received_bytes": front.received_bytes,
            "sent_bytes": front.sent_bytes,
            "wait_time_us": front.wait_time_us,
        }
    ]
    for one in answer.backends:
        counts = asdict(one)
        up = None if one.up is None else int(one.up)
        rows.append({**counts, "side": one.role, "up": up})
    return [{column.name: row.get(column.name) for column in POOLER.columns} for row in rows]


def pooler_observers(pooler: Pooler) -> tuple[Observer, ...]:
    """All observers of one pooler."""
    return (PoolerObserver(pooler=pooler),)
