"""Runs the SQL files of a workload: extensions, tables with their record, functions, reset.

Every error names the workload, the file and, where the server says it, the line as rendered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql as composed

from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.model import StateIdentity
from pgdyno.workloads import sql
from pgdyno.workloads.definition import FUNCTIONS_FILE, SCHEMA_FILE, ResolvedWorkload
from pgdyno.workloads.state import existing_tables, write_record
from pgdyno.workloads.target import first_line

_Connection = psycopg.Connection[Any]


def make_extensions(connection: _Connection, workload: ResolvedWorkload) -> None:
    """Make the extensions that the workload needs, where they are not there."""
    for name in workload.extensions:
        try:
            statement = composed.SQL("create extension if not exists {}")
            connection.execute(statement.format(composed.Identifier(name)))
        except psycopg.Error as error:
            raise PgdynoError(
                f"workload '{workload.name}' needs extension {name}: {first_line(error)}",
                hint="install it on the server's host, or choose another server (--pg)",
            ) from error


def make_tables(
    connection: _Connection,
    workload: ResolvedWorkload,
    identity: StateIdentity,
    drop: Sequence[str],
) -> None:
    """Drop old tables, make new ones and record them as incomplete: all of it, or nothing."""
    try:
        with connection.transaction():
            if drop:
                names = composed.SQL(", ").join(map(composed.Identifier, drop))
                connection.execute(composed.SQL("drop table if exists {}").format(names))
            execute_file(connection, workload, SCHEMA_FILE, workload.schema_sql)
            made = existing_tables(connection, [table.name for table in workload.tables])
            missing = [table.name for table in workload.tables if table.name not in made]
            if missing:
                raise InvalidInput(
                    f"schema.sql of '{workload.name}' does not make table {missing[0]}",
                    hint="workload.toml names it under tables",
                )
            write_record(connection, workload, identity, complete=False)
    except psycopg.errors.DependentObjectsStillExist as error:
        raise PgdynoError(
            f"tables cannot be replaced: {first_line(error)}",
            hint="drop what depends on them first",
        ) from error


def make_functions(connection: _Connection, workload: ResolvedWorkload) -> None:
    """Make the workload's functions anew, in one transaction."""
    with connection.transaction():
        execute_file(connection, workload, FUNCTIONS_FILE, workload.functions_sql)


def execute_file(connection: _Connection, workload: ResolvedWorkload, file: str, text: str) -> None:
    """Run a rendered file of several statements; raises `PgdynoError` with file and line."""
    if not text.strip():
        return
    try:
        connection.execute(text.encode())
    except psycopg.errors.DependentObjectsStillExist:
        raise
    except psycopg.Error as error:
        position = error.diag.statement_position
        line = text.count("\n", 0, int(position)) + 1 if position else None
        at = f"{file}:{line} (as rendered)" if line else file
        raise PgdynoError(f"{workload.name}/{at}: {first_line(error)}") from error


def table_bytes(connection: _Connection, tables: Sequence[str]) -> tuple[int, int]:
    """Bytes of tables without their indexes, and of their indexes."""
    row = connection.execute(sql.text("table_bytes").encode(), {"tables": list(tables)}).fetchone()
    return (0, 0) if row is None else (int(row[0]), int(row[1]))


def large_tables(connection: _Connection, tables: Sequence[str]) -> int:
    """How many of the tables hold a tenth or more of all their bytes."""
    sizes = [table_bytes(connection, [table])[0] for table in tables]
    return sum(size * 10 >= sum(sizes) for size in sizes)
