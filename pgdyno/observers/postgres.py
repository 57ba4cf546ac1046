"""The server's own counters: the database, checkpoints, background writer, WAL; and autovacuum.

Each table is one question of `pgdyno/queries/`, asked on a connection of its own, so that a slow
answer delays no other observer. A lost connection is tried again at the next sample. The server
publishes most of these counters about once a second and when a session ends, so a single second may
show nothing and the next one twice as much; differences over the whole measurement are exact once
the load's sessions have ended. The observers' own statements count as commits of the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pgdyno.errors import PgdynoError
from pgdyno.observers.base import Column, Observer, Row, Table
from pgdyno.observers.session import Session, open_session


def _counter(name: str, unit: str, about: str) -> Column:
    return Column(name=name, unit=unit, kind="counter", about=about)


def _time_ms(name: str, about: str) -> Column:
    return Column(name=name, unit="ms", kind="counter", about=about, type="real")


DATABASE = Table(
    name="database",
    about="pg_stat_database of the database under load",
    columns=(
        Column(name="backends", unit="sessions", kind="gauge", about="connected sessions"),
        _counter(
            "commits", "transactions", "committed by the server, the observers' own among them"
        ),
        _counter("rollbacks", "transactions", "rolled back by the server"),
        _counter("blocks_read", "blocks", "asked of the operating system"),
        _counter("blocks_hit", "blocks", "found in shared buffers"),
        _counter("rows_returned", "rows", "read by scans"),
        _counter("rows_fetched", "rows", "fetched by index scans"),
        _counter("rows_inserted", "rows", "inserted"),
        _counter("rows_updated", "rows", "updated"),
        _counter("rows_deleted", "rows", "deleted"),
        _counter("conflicts", "statements", "cancelled by recovery on a standby"),
        _counter("temp_files", "files", "temporary files written"),
        _counter("temp_bytes", "bytes", "written to temporary files"),
        _counter("deadlocks", "deadlocks", "detected"),
        _time_ms("block_read_time_ms", "spent reading blocks; 0 without track_io_timing"),
        _time_ms("block_write_time_ms", "spent writing blocks; 0 without track_io_timing"),
        _time_ms("session_time_ms", "of all sessions (from 14)"),
        _time_ms("active_time_ms", "executing statements (from 14)"),
        _time_ms("idle_in_transaction_time_ms", "idle inside a transaction (from 14)"),
        _counter("sessions", "sessions", "established (from 14)"),
        _counter("sessions_abandoned", "sessions", "whose client was lost (from 14)"),
        _counter("sessions_fatal", "sessions", "ended by a fatal error (from 14)"),
        _counter("sessions_killed", "sessions", "ended by an operator (from 14)"),
    ),
)

BGWRITER = Table(
    name="bgwriter",
    about="checkpoints, and who wrote buffers out",
    columns=(
        _counter("checkpoints_timed", "checkpoints", "begun because of checkpoint_timeout"),
        _counter(
            "checkpoints_requested", "checkpoints", "begun because of max_wal_size or a command"
        ),
        _time_ms("checkpoint_write_time_ms", "of checkpoints, writing"),
        _time_ms("checkpoint_sync_time_ms", "of checkpoints, flushing"),
        _counter("checkpoint_buffers", "blocks", "written by checkpoints"),
        _counter("cleaner_buffers", "blocks", "written by the background writer"),
        _counter("cleaner_stops", "rounds", "that the background writer broke off at its limit"),
        _counter("backend_buffers", "blocks", "written by the sessions themselves"),
        _counter("backend_fsyncs", "calls", "of fsync by the sessions themselves"),
        _counter("buffers_allocated", "blocks", "given to new contents"),
    ),
)

WAL = Table(
    name="wal",
    about="write-ahead log: how much, and how often it was written and flushed",
    columns=(
        _counter("wal_position_bytes", "bytes", "insert position (on a standby: received)"),
        _counter("wal_records", "records", "generated (from 14)"),
        _counter("wal_full_page_images", "images", "of whole pages, after a checkpoint (from 14)"),
        _counter("wal_bytes", "bytes", "generated (from 14)"),
        _counter("wal_buffers_full", "writes", "because WAL buffers were full (from 14)"),
        _counter("wal_writes", "calls", "that wrote WAL (from 14)"),
        _counter("wal_syncs", "calls", "that flushed WAL (from 14)"),
        _time_ms("wal_write_time_ms", "writing; 0 without track_wal_io_timing (from 14)"),
        _time_ms("wal_sync_time_ms", "flushing; 0 without track_wal_io_timing (from 14)"),
    ),
)


AUTOVACUUM = Table(
    name="autovacuum",
    about="autovacuum workers at this moment",
    columns=(
        Column(name="workers", unit="workers", kind="gauge", about="at work"),
        Column(name="doing", unit="", kind="label", about="what they say they do", type="text"),
    ),
)


@dataclass(slots=True, kw_only=True)
class PostgresObserver:
    """Asks one question, by default the one named like its table.

    `always`: an answer without rows is a missed sample.
    """

    conninfo: str
    table: Table
    password: str | None = field(default=None, repr=False)
    question: str = ""
    always: bool = True
    resolution_s: float | None = 1.0
    _session: Session | None = field(default=None, init=False, repr=False)

    def begin(self) -> None:
        """Connect; `PgdynoError` when that does not work."""
        self._session = open_session(self.conninfo, self.password)

    def sample(self) -> Iterable[Row]:
        """The question's rows; connects again when the connection was lost."""
        if self._session is None or self._session.lost:
            self._session = open_session(self.conninfo, self.password)
        question = self.question or self.table.name
        rows = self._session.ask(question)
        if not rows and self.always:
            raise PgdynoError(f"query '{question}' returned nothing")
        return rows

    def end(self) -> None:
        """Disconnect."""
        if self._session is not None:
            self._session.close()
            self._session = None


def postgres_observers(
    conninfo: str,
    password: str | None = None,
    *,
    role: str | None = None,
    resolution_s: float | None = 1.0,
) -> tuple[Observer, ...]:
    """All observers of one server: each holds one connection from begin to end.

    The tables of a server with a `role` begin with it: `standby-1_wal`.
    """
    return tuple(
        PostgresObserver(
            conninfo=conninfo,
            table=table if role is None else of_role(table, role),
            question=table.name,
            password=password,
            resolution_s=resolution_s,
        )
        for table in (DATABASE, BGWRITER, WAL, AUTOVACUUM)
    )


def of_role(table: Table, role: str) -> Table:
    """The same table of one of several servers."""
    return replace(table, name=f"{role}_{table.name}", about=f"{table.about}, of {role}")
