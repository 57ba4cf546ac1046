"""Takes the snapshots that a workload's checks are judged from.

One read-only transaction answers the queries of all checks, so that they see one moment. A query
that fails or misses the deadline is remembered with its reason and leaves its rules undecided; a
server that cannot be reached does the same to all of them. `judging.py` decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.rows import dict_row

from pgdyno.expressions import Value
from pgdyno.queries import query_for
from pgdyno.workloads.definition import ResolvedWorkload
from pgdyno.workloads.judging import Row, ServerLife, Snapshot
from pgdyno.workloads.target import Target, connect, first_line

CheckProgress = Callable[[str, float], None]
DEADLINE_S = 600.0


def silent(text: str, share: float) -> None:
    """Progress for those who do not listen."""


def take_snapshot(
    workload: ResolvedWorkload,
    target: Target,
    progress: CheckProgress = silent,
    *,
    deadline_s: float = DEADLINE_S,
) -> Snapshot:
    """The rows of all checks now, within `deadline_s` seconds altogether.

    `progress` hears the name of each check and the share done before it. Raises nothing but what
    the person does (Ctrl-C cancels the running query); what went wrong is in `Snapshot.problems`.
    """
    queries = {check.query: check for check in reversed(workload.checks)}
    if not queries:
        return Snapshot()
    end = time.monotonic() + deadline_s
    rows: dict[str, Row] = {}
    problems: dict[str, str] = {}
    life = ServerLife()
    try:
        with connect(target) as connection:
            life = read_life(connection)
            connection.execute("begin transaction isolation level repeatable read, read only")
            for number, (query, check) in enumerate(queries.items()):
                progress(check.name, number / len(queries))
                try:
                    rows[query] = _one_row(connection, query, end - time.monotonic())
                except (psycopg.Error, ValueError) as error:
                    problems[query] = f"{check.source}: {first_line(error)}"
                    connection.execute("rollback")
                    connection.execute(
                        "begin transaction isolation level repeatable read, read only"
                    )
            connection.execute("rollback")
    except psycopg.Error as error:
        for query, check in queries.items():
            if query not in rows:
                problems.setdefault(query, f"{check.source}: {first_line(error)}")
    return Snapshot(rows=rows, problems=problems, life=life)


def read_life(connection: psycopg.Connection[Any]) -> ServerLife:
    """When this life of the server began."""
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(query_for("server_life", connection.info.server_version).encode())
        row = cursor.fetchone() or {}
    return ServerLife(postmaster=row.get("postmaster"), checkpointer=row.get("checkpointer"))


def _one_row(connection: psycopg.Connection[Any], query: str, left_s: float) -> dict[str, Value]:
    """The one row of a query as plain values, without NULLs; `ValueError` for other numbers."""
    timeout_ms = max(1, int(left_s * 1000))
    connection.execute(f"set local statement_timeout = {timeout_ms}")
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(query.encode())
        found = cursor.fetchall()
    if len(found) != 1:
        raise ValueError(f"returned {len(found)} rows instead of one")
    return {name: _plain(value) for name, value in found[0].items() if value is not None}


def _plain(value: object) -> Value:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value if isinstance(value, bool | int | float | str) else str(value)
