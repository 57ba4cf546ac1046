"""Brings a workload's data into memory before it is measured, and finds out how much is there.

`pg_prewarm` where the server has it. Elsewhere tables are read: small ones by counting rows, large
ones in the order of a key, because a sequential scan of a table above a quarter of shared buffers
goes through a small ring and leaves nothing behind. Indexes come last, so that they stay when not
everything fits. The share in shared buffers is `pg_buffercache`'s, or that of a second reading, or
unknown. Extensions are made in the schema `pgdyno`; what cannot be made is done without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg import sql as composed
from psycopg.rows import class_row

from pgdyno.errors import PgdynoError
from pgdyno.model import PrewarmReport
from pgdyno.workloads import sql
from pgdyno.workloads.definition import ResolvedWorkload
from pgdyno.workloads.target import Target, connect, first_line

PrewarmListener = Callable[[str, float], None]
DEADLINE_S = 600.0

# A sequential scan of a table above this part of shared buffers uses a ring of buffers instead.
_RING_PART = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A table or index with storage; `key_column` is one that an index of a table begins with."""

    oid: int
    name: str
    is_table: bool
    bytes: int
    key_column: str | None


def silent(text: str, share: float) -> None:
    """A listener that does not listen."""


def prewarm(
    workload: ResolvedWorkload,
    target: Target,
    listener: PrewarmListener = silent,
    *,
    deadline_s: float = DEADLINE_S,
) -> PrewarmReport:
    """Bring the workload's tables and indexes into memory, within `deadline_s` seconds.

    `listener` hears what is read and the share of bytes done. Raises `PgdynoError` when the
    server cannot be reached; a missed deadline ends the reading, and the report says how far it
    came.
    """
    try:
        with connect(target) as connection:
            tables = [table.name for table in workload.tables]
            return _warmed(connection, tables, listener, deadline_s)
    except psycopg.Error as error:
        raise PgdynoError(f"reading data into memory failed: {first_line(error)}") from error


def _warmed(
    connection: psycopg.Connection[Any],
    tables: Sequence[str],
    listener: PrewarmListener,
    deadline_s: float,
) -> PrewarmReport:
    began_s = time.monotonic()
    relations = read_relations(connection, tables) if tables else ()
    if not relations:
        return PrewarmReport(method="none", duration_s=0.0, bytes=0)
    warming = _Warming(connection, listener, began_s + deadline_s)
    method, done_bytes = warming.warm(relations)
    share = warming.share(relations, method)
    return PrewarmReport(
        method=method,
        duration_s=time.monotonic() - began_s,
        bytes=done_bytes,
        shared_buffers_share=share,
    )


def read_relations(
    connection: psycopg.Connection[Any], tables: Sequence[str]
) -> tuple[Relation, ...]:
    """Relations of the tables: heaps, then what is stored out of line, then indexes."""
    with connection.cursor(row_factory=class_row(Relation)) as cursor:
        cursor.execute(sql.text("relations").encode(), {"tables": list(tables)})
        return tuple(cursor.fetchall())


class _Warming:
    """One prewarming over one connection, until a deadline on the monotonic clock."""

    def __init__(
        self, connection: psycopg.Connection[Any], listener: PrewarmListener, end_s: float
    ) -> None:
        self._connection = connection
        self._listener = listener
        self._end_s = end_s

    def warm(self, relations: Sequence[Relation]) -> tuple[Literal["pg_prewarm", "read"], int]:
        """Read the relations one by one; the method and the bytes read."""
        schema = self._extension("pg_prewarm")
        method: Literal["pg_prewarm", "read"] = "read" if schema is None else "pg_prewarm"
        ring_bytes = self._shared_buffers() // _RING_PART
        total_bytes, done_bytes = sum(each.bytes for each in relations) or 1, 0
        for relation in relations:
            self._listener(f"reading {relation.name}", done_bytes / total_bytes)
            try:
                self._limit()
                if schema is not None:
                    call = f"select {schema}.pg_prewarm(%s::oid::regclass, 'buffer')"
                    self._connection.execute(call.encode(), [relation.oid])
                elif relation.is_table:
                    self._read(relation, ring_bytes)
                done_bytes += relation.bytes
            except psycopg.errors.QueryCanceled:
                break
            except psycopg.errors.UndefinedTable:
                continue
        return method, done_bytes

    def share(
        self, relations: Sequence[Relation], method: Literal["pg_prewarm", "read"]
    ) -> float | None:
        """The share of the relations' blocks in shared buffers, None where it cannot be known."""
        try:
            schema = self._extension("pg_buffercache")
            if schema is not None:
                return self._share_by_view(schema, relations)
            return self._share_by_reading(relations) if method == "read" else None
        except psycopg.Error:
            return None

    def _read(self, relation: Relation, ring_bytes: int) -> None:
        """Read a table and its indexes by counting its rows."""
        name = relation.name
        if relation.bytes <= ring_bytes or relation.key_column is None:
            self._count(f"select count(*) from {name}", off=("indexscan", "indexonlyscan"))
            self._count(f"select count(*) from {name}", off=("seqscan", "bitmapscan"))
            return
        key = f"select count(*) from {name} where {relation.key_column} is not null"
        self._count(key, off=("seqscan", "bitmapscan", "indexonlyscan"))

    def _count(self, query: str, *, off: Sequence[str]) -> None:
        """Run a query with some kinds of plans discouraged and in one process."""
        with self._connection.transaction():
            for kind in off:
                self._connection.execute(f"set local enable_{kind} = off".encode())
            self._connection.execute(b"set local max_parallel_workers_per_gather = 0")
            self._connection.execute(query.encode())

    def _limit(self) -> None:
        left_ms = max(1, int((self._end_s - time.monotonic()) * 1000))
        self._connection.execute(f"set statement_timeout = {left_ms}".encode())

    def _shared_buffers(self) -> int:
        row = self._connection.execute(sql.text("shared_buffers").encode()).fetchone()
        return 0 if row is None else int(row[0])

    def _extension(self, name: str) -> str | None:
        """The schema of an extension, made where that is possible; None where it is not."""
        found = self._extension_schema(name)
        if found is not None:
            return found
        available = self._connection.execute(
            sql.text("extension_available").encode(), {"name": name}
        ).fetchone()
        if available is None or not available[0]:
            return None
        try:
            with self._connection.transaction():
                self._connection.execute("create schema if not exists pgdyno")
                statement = composed.SQL("create extension if not exists {} schema pgdyno")
                self._connection.execute(statement.format(composed.Identifier(name)))
        except psycopg.Error:
            # No right to make it: the other way works for everybody.
            return None
        return self._extension_schema(name)

    def _extension_schema(self, name: str) -> str | None:
        row = self._connection.execute(
            sql.text("extension_schema").encode(), {"name": name}
        ).fetchone()
        return None if row is None else str(row[0])

    def _share_by_view(self, schema: str, relations: Sequence[Relation]) -> float | None:
        query = (
            f"select count(*) * current_setting('block_size')::bigint from {schema}.pg_buffercache "
            "where relfilenode in (select pg_relation_filenode(oid::oid::regclass) "
            "from unnest(%s::bigint[]) oid) and relforknumber = 0 and reldatabase = "
            "(select oid from pg_database where datname = current_database())"
        )
        oids = [relation.oid for relation in relations]
        row = self._connection.execute(query.encode(), [oids]).fetchone()
        total_bytes = sum(relation.bytes for relation in relations)
        return None if row is None or not total_bytes else min(1.0, int(row[0]) / total_bytes)

    def _share_by_reading(self, relations: Sequence[Relation]) -> float | None:
        """Of the tables' blocks, those that a second reading finds in shared buffers."""
        hit = read = 0
        for relation in relations:
            if relation.is_table and relation.bytes:
                plan = self._explained(f"select count(*) from {relation.name}")
                hit += int(plan.get("Shared Hit Blocks", 0))
                read += int(plan.get("Shared Read Blocks", 0))
        return hit / (hit + read) if hit + read else None

    def _explained(self, query: str) -> dict[str, Any]:
        """The top node of an executed sequential plan in one process."""
        self._limit()
        with self._connection.transaction():
            for kind in ("indexscan", "indexonlyscan", "bitmapscan"):
                self._connection.execute(f"set local enable_{kind} = off".encode())
            self._connection.execute(b"set local max_parallel_workers_per_gather = 0")
            row = self._connection.execute(
                f"explain (analyze, buffers, timing off, format json) {query}".encode()
            ).fetchone()
        plan: dict[str, Any] = {} if row is None else row[0][0]["Plan"]
        return plan
