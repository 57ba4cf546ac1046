"""What every observer must do, for all of them; one that is missing here fails the last test."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
from pathlib import Path

import pytest

import pgdyno.observers
from pgdyno.errors import PgdynoError
from pgdyno.hosts.local import Local
from pgdyno.observers.base import Noop, Observer
from pgdyno.observers.host import HostObserver, host_observers
from pgdyno.observers.poolers import PoolerObserver
from pgdyno.observers.postgres import PostgresObserver, postgres_observers
from pgdyno.observers.process import ProcessGroup, ProcessObserver
from pgdyno.observers.replication import REPLAY, primary_observers, standby_observers
from pgdyno.observers.tables import HOST_TABLES, TABLES, with_tables
from pgdyno.queries import catalogue
from pgdyno.servers.base import Pooler

pytestmark = pytest.mark.unit

# Nobody listens there; what they do with a server is tested in tests/pg/test_queries.py.
NOWHERE = "host=/nowhere dbname=none"
UNREACHABLE = (
    *postgres_observers(NOWHERE),
    *primary_observers(NOWHERE, None),
    PostgresObserver(conninfo=NOWHERE, table=REPLAY),
)
READABLE: tuple[Observer, ...] = (
    Noop(),
    *host_observers(Local()),
    ProcessObserver(host=Local(), groups=(ProcessGroup(role="tests", root=os.getpid),)),
)
# What each kind answers is tested in tests/pg/test_poolers.py.
POOLERS = tuple(
    PoolerObserver(
        pooler=Pooler(
            kind=kind, version="1", conninfo=NOWHERE, host_name="local", statistics=statistics
        )
    )
    for kind, statistics in (("pgbouncer", NOWHERE), ("haproxy", "/nowhere/socket"))
)
ALL: tuple[Observer, ...] = (*READABLE, *UNREACHABLE, *POOLERS)


def name_of(observer: Observer) -> str:
    return observer.table.name


@pytest.mark.parametrize("observer", ALL, ids=name_of)
def test_table_is_described(observer: Observer) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", observer.table.name)
    names = [column.name for column in observer.table.columns]
    assert len(set(names)) == len(names)
    assert not {"monotonic_ns", "wall_unix_ns"} & set(names)
    for column in observer.table.columns:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", column.name)
        assert column.about
        assert (column.kind == "label") == (column.type == "text")
        assert column.unit or column.kind == "label"
    # The column names itself with its unit where that is bytes or milliseconds.
    for column in observer.table.columns:
        for unit in ("bytes", "ms"):
            assert (column.unit == unit) == column.name.endswith(f"_{unit}"), column.name


@pytest.mark.parametrize("observer", READABLE, ids=name_of)
def test_rows_have_exactly_the_columns_and_types(observer: Observer) -> None:
    observer.begin()
    try:
        rows = [dict(row) for _ in range(2) for row in observer.sample()]
    finally:
        observer.end()
    types = {"integer": int, "real": (int, float), "text": str}
    for row in rows:
        assert list(row) == [column.name for column in observer.table.columns]
        for column in observer.table.columns:
            assert row[column.name] is None or isinstance(row[column.name], types[column.type])


@pytest.mark.parametrize("observer", READABLE, ids=name_of)
def test_counters_do_not_fall(observer: Observer) -> None:
    observer.begin()
    first, second = list(observer.sample()), list(observer.sample())
    observer.end()
    counters = [column.name for column in observer.table.columns if column.kind == "counter"]
    for before, after in zip(first, second, strict=False):
        # The kernel may take a jiffy of waiting or idling back (proc(5)).
        for name in set(counters) - {"wait_jiffies", "idle_jiffies"}:
            old, new = before[name], after[name]
            assert old is None or (new is not None and new >= old), name


@pytest.mark.parametrize("observer", UNREACHABLE, ids=name_of)
def test_what_cannot_be_reached_says_so_when_it_begins(observer: Observer) -> None:
    with pytest.raises(PgdynoError, match="cannot connect to observe the server"):
        observer.begin()
    observer.end()


@pytest.mark.parametrize("observer", POOLERS, ids=lambda observer: observer.pooler.kind)
def test_a_pooler_that_cannot_be_reached_says_so_when_it_begins(observer: Observer) -> None:
    with pytest.raises(PgdynoError, match=r"cannot ask pgbouncer|haproxy does not answer"):
        observer.begin()
    observer.end()


def test_a_password_does_not_show() -> None:
    (observer, *_) = postgres_observers("host=/nowhere", password="hush")
    assert "hush" not in repr(observer)


def test_every_postgres_table_has_its_question() -> None:
    for observer in UNREACHABLE:
        assert observer.table.name in catalogue()


def test_the_tables_of_one_of_several_servers_begin_with_its_role() -> None:
    own = [
        *postgres_observers(NOWHERE, role="standby-1"),
        *standby_observers(NOWHERE, None, role="standby-1"),
    ]
    assert [one.table.name for one in own] == [
        f"standby-1_{name}" for name in ("database", "bgwriter", "wal", "autovacuum", "replay")
    ]


def test_page_is_up_to_date() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "observers.md").read_text()
    assert page == with_tables(page), "run: make docs"


def test_every_table_and_every_implementation_is_here() -> None:
    seen = {type(observer) for observer in ALL}
    assert seen == {Noop, HostObserver, PoolerObserver, ProcessObserver, PostgresObserver}
    described = {f"host_{table.name}" for table in HOST_TABLES} | {one.name for one in TABLES}
    assert {name_of(observer) for observer in ALL} - {"noop"} == described
    found = set()
    for module in pkgutil.iter_modules(pgdyno.observers.__path__, "pgdyno.observers."):
        for _, one in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if one is not Observer and all(
                hasattr(one, verb) for verb in ("begin", "sample", "end")
            ):
                found.add(one)
    assert found == seen
