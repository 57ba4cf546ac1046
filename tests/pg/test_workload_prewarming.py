"""Prewarming: what is read, how, and the share that is then in shared buffers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from pgdyno.workloads import catalog
from pgdyno.workloads.definition import ResolvedWorkload, Table
from pgdyno.workloads.prewarming import prewarm, read_relations
from pgdyno.workloads.resolving import resolve
from pgdyno.workloads.target import Target

pytestmark = pytest.mark.pg


@pytest.fixture
def filled(database: str) -> Iterator[str]:
    """A database with one table of about 4 MB, its key and something stored out of line."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table filled (id int primary key, text text)")
        connection.execute(
            "insert into filled select n, repeat('x', 80) from generate_series(1, 30000) n"
        )
        connection.execute("alter table filled alter text set storage external")
        connection.execute("insert into filled values (0, repeat('y', 100000))")
        connection.execute("vacuum analyze filled")
    yield database


def workload_on(*tables: str) -> ResolvedWorkload:
    noop = resolve(catalog.find("noop"), {})
    return ResolvedWorkload(
        **{name: getattr(noop, name) for name in noop.__slots__ if name != "tables"},
        tables=tuple(Table(name=name, unlogged=False) for name in tables),
    )


def without_extensions(database: str) -> str:
    """The conninfo of a role that may read but cannot make extensions."""
    with psycopg.connect(database, autocommit=True) as connection:
        with suppress(psycopg.errors.DuplicateObject):
            connection.execute("create role reader login")
        connection.execute("grant select on filled to reader")
    return database.replace("user=postgres", "user=reader")


def test_a_workload_without_data_needs_nothing(database: str) -> None:
    report = prewarm(workload_on(), Target(conninfo=database))
    assert (report.method, report.bytes) == ("none", 0)


def test_relations_are_tables_then_indexes(filled: str) -> None:
    with psycopg.connect(filled) as connection:
        relations = read_relations(connection, ["filled"])
    assert relations[0].name == "filled"
    assert [each.is_table for each in relations] == [True, False, False]
    assert relations[0].key_column == "id"
    assert any(each.name == "filled_pkey" for each in relations)
    assert any("pg_toast" in each.name for each in relations)


def test_everything_is_in_memory_afterwards(filled: str) -> None:
    heard: list[tuple[str, float]] = []
    report = prewarm(
        workload_on("filled"),
        Target(conninfo=filled),
        lambda text, share: heard.append((text, share)),
    )
    with psycopg.connect(filled) as connection:
        relations = read_relations(connection, ["filled"])
    assert report.bytes == sum(relation.bytes for relation in relations)
    assert heard[0] == ("reading filled", 0.0)
    available = Path("/usr/share/postgresql/15/extension/pg_prewarm.control").exists()
    assert report.method == ("pg_prewarm" if available else "read")
    assert report.shared_buffers_share is not None
    assert report.shared_buffers_share > 0.99


def test_who_cannot_make_extensions_reads(filled: str) -> None:
    report = prewarm(workload_on("filled"), Target(conninfo=without_extensions(filled)))
    assert report.method == "read"
    assert report.shared_buffers_share is not None
    assert report.shared_buffers_share > 0.99


def test_a_table_larger_than_the_ring_stays_in_memory_too(database: str) -> None:
    """40 MB against shared buffers of 128 MB: a sequential scan alone would leave little of it."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table filled (id int primary key, text text)")
        connection.execute(
            "insert into filled select n, repeat('x', 200) from generate_series(1, 170000) n"
        )
        connection.execute("vacuum analyze filled")
    report = prewarm(workload_on("filled"), Target(conninfo=without_extensions(database)))
    assert report.method == "read" and report.bytes > 32 * 1024**2
    assert report.shared_buffers_share is not None
    assert report.shared_buffers_share > 0.99


def test_a_missed_deadline_is_no_error(filled: str) -> None:
    report = prewarm(
        workload_on("filled"), Target(conninfo=without_extensions(filled)), deadline_s=0.0
    )
    assert report.bytes < 4_000_000
