"""What the data have been through when a trial begins: dead rows, bloat, vacuum, checkpoint.

An aged database is not a fresh one: its tables are larger, autovacuum is about to come, and the
next checkpoint is near. What a server does not tell us is None, never zero.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pgdyno.errors import PgdynoError
from pgdyno.model import StateAge
from pgdyno.observers.base import Row
from pgdyno.observers.session import Session


def read_state_age(session: Session, tables: Collection[str]) -> StateAge:
    """The age of these tables, of all there are where none is named, and of the checkpoint."""
    return state_age(
        [row for row in _asked(session, "table_ages") if not tables or row["name"] in tables],
        next(iter(_asked(session, "checkpoint_age")), None),
    )


def state_age(tables: Sequence[Row], checkpoint: Row | None) -> StateAge:
    """The age from the rows of the questions `table_ages` and `checkpoint_age`. Pure.

    Of times without vacuum and analyze the longest counts, and None where a table never had any.

    >>> state_age([], {"since_checkpoint_s": 2.0, "redo_bytes": 100, "wal_end_bytes": 300,
    ...     "segment_bytes": 100, "max_wal_bytes": 1900, "divisor": 1.9}).checkpoint_distance_bytes
    800
    """
    age = StateAge()
    if tables:
        age = StateAge(
            dead_rows=_sum(tables, "dead_rows"),
            live_rows=_sum(tables, "live_rows"),
            heap_bytes=_sum(tables, "heap_bytes"),
            index_bytes=_sum(tables, "index_bytes"),
            since_vacuum_s=_longest(tables, "since_vacuum_s"),
            since_analyze_s=_longest(tables, "since_analyze_s"),
        )
    if checkpoint is None:
        return age
    redo, end = int(str(checkpoint["redo_bytes"])), int(str(checkpoint["wal_end_bytes"]))
    return age.model_copy(
        update={
            "since_checkpoint_s": float(str(checkpoint["since_checkpoint_s"])),
            "wal_since_checkpoint_bytes": end - redo,
            "checkpoint_distance_bytes": checkpoint_distance_bytes(
                redo,
                end,
                segment_bytes=int(str(checkpoint["segment_bytes"])),
                max_wal_bytes=int(str(checkpoint["max_wal_bytes"])),
                divisor=float(str(checkpoint["divisor"])),
            ),
        }
    )


def checkpoint_distance_bytes(
    redo_bytes: int, end_bytes: int, *, segment_bytes: int, max_wal_bytes: int, divisor: float
) -> int:
    """WAL that may still be written before its amount calls for a checkpoint.

    The server looks when it has filled a segment, and asks for one when that is segment number
    `max_wal_size / divisor` counted from the one where the last checkpoint began. Source:
    CalculateCheckpointSegments() and XLogCheckpointNeeded() in PostgreSQL's xlog.c.
    """
    segments = max(1, int(max_wal_bytes / segment_bytes / divisor))
    reached_bytes = (redo_bytes // segment_bytes + segments) * segment_bytes
    return max(0, reached_bytes - end_bytes)


def _asked(session: Session, question: str) -> list[Row]:
    """Rows, or none where the server has no answer for us (a standby, a role without rights)."""
    try:
        return session.ask(question)
    except PgdynoError:
        return []


def _sum(rows: Sequence[Row], column: str) -> int:
    return sum(int(str(row[column])) for row in rows)


def _longest(rows: Sequence[Row], column: str) -> float | None:
    times = [row[column] for row in rows]
    if any(time is None for time in times):
        return None
    return max(float(str(time)) for time in times)
