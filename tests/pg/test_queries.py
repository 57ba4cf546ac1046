"""Every question of pgdyno/queries on every server at hand, one private server a major version.

The columns must be those its observer declares, and the numbers must follow what is done to the
server. PGDYNO_TEST_MORE_PG may name further installations: folders, with `:` between them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgdyno.durability.classes import classify
from pgdyno.errors import PgdynoError
from pgdyno.hosts.local import Local
from pgdyno.model import Durability, SystemChoice
from pgdyno.observers.base import Table
from pgdyno.observers.durability_facts import (
    LoadFacts,
    gather,
    read_settled_writes,
    server_storage,
)
from pgdyno.observers.postgres import AUTOVACUUM, BGWRITER, DATABASE, WAL, PostgresObserver
from pgdyno.observers.server_settings import read_settings, with_unit
from pgdyno.observers.session import Session, session
from pgdyno.observers.sizes import read_sizes, with_after
from pgdyno.queries import catalogue
from pgdyno.servers.base import Server
from pgdyno.servers.binaries import find_installations, major_version
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.provision import provision

pytestmark = pytest.mark.pg

AT_HAND = sorted({major_version(one.version_num) for one in find_installations(Local())})
FURTHER = [path for path in os.environ.get("PGDYNO_TEST_MORE_PG", "").split(":") if path]


@pytest.fixture(scope="module", params=[*AT_HAND, *FURTHER])
def any_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        choice = SystemChoice(pg=request.param, settings={"wal_writer_delay": "300ms"})
        with provision(choice, Local(), ledger=Ledger(Path(folder))) as server:
            yield server


@pytest.fixture
def asking(any_server: Server) -> Iterator[Session]:
    with session(any_server.conninfo, any_server.password) as opened:
        yield opened


def execute(server: Server, *statements: str) -> None:
    with psycopg.connect(
        server.conninfo, autocommit=True, password=server.password or ""
    ) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_there_is_more_than_one_version_at_hand() -> None:
    assert len(AT_HAND) >= 2


@pytest.mark.parametrize("question", sorted(catalogue()))
def test_every_question_is_answered(asking: Session, question: str) -> None:
    asking.ask(question)


@pytest.mark.parametrize(
    "table", [DATABASE, BGWRITER, WAL, AUTOVACUUM], ids=lambda table: table.name
)
def test_columns_and_types_are_those_declared(asking: Session, table: Table) -> None:
    row = asking.ask_one(table.name)
    assert list(row) == [column.name for column in table.columns]
    types = {"integer": int, "real": float}
    for column in table.columns:
        assert row[column.name] is None or isinstance(row[column.name], types[column.type]), column


def test_counters_follow_what_is_done(any_server: Server, asking: Session) -> None:
    before = {name: asking.ask_one(name) for name in ("database", "bgwriter", "wal")}
    execute(
        any_server,
        "DROP TABLE IF EXISTS counted",
        "CREATE TABLE counted AS SELECT generate_series(1, 10000) AS n",
        "UPDATE counted SET n = n + 1",
        "CHECKPOINT",
    )
    read_settled_writes(asking)
    after = {name: asking.ask_one(name) for name in ("database", "bgwriter", "wal")}

    def grown(table: str, column: str) -> float:
        return float(str(after[table][column])) - float(str(before[table][column]))

    assert grown("database", "rows_inserted") >= 10_000
    assert grown("database", "rows_updated") >= 10_000
    assert grown("bgwriter", "checkpoints_requested") == 1
    assert grown("bgwriter", "checkpoint_buffers") > 40
    assert grown("wal", "wal_position_bytes") > 1_000_000
    if asking.version_num < 140000:
        assert after["wal"]["wal_bytes"] is None
    else:
        grown_bytes = grown("wal", "wal_position_bytes")
        assert grown("wal", "wal_bytes") == pytest.approx(grown_bytes, rel=0.05)
        assert grown("wal", "wal_syncs") >= 1


def test_settings_that_differ_have_value_default_and_source(asking: Session) -> None:
    settings = read_settings(asking)
    differing = {one.name: one for one in settings.non_default}
    delay = differing["wal_writer_delay"]
    assert (delay.value, delay.default) == ("300ms", "200ms")
    assert settings.all["fsync"] == "on"
    assert "fsync" not in differing
    # What our own session asked for is not the server's.
    assert not {"application_name", "default_transaction_read_only"} & set(differing)
    assert settings.server_version_num == asking.version_num


def test_compiled_in_values_are_written_as_show_writes_them(asking: Session) -> None:
    differing = {one.name for one in read_settings(asking).non_default}
    wrong = [
        (row["name"], row["shown"], row["compiled_in"], row["unit"])
        for row in asking.ask("settings")
        if row["name"] not in differing and row["unit"] and row["source"] == "default"
        if with_unit(str(row["compiled_in"]), str(row["unit"])) != row["shown"]
    ]
    assert wrong == []


def test_sizes_know_tables_indexes_and_toast(any_server: Server, asking: Session) -> None:
    execute(
        any_server,
        "DROP TABLE IF EXISTS sized, forgetful",
        "CREATE TABLE sized (id int PRIMARY KEY, body text)",
        "CREATE UNLOGGED TABLE forgetful (n int)",
    )
    before = read_sizes(asking)
    execute(
        any_server,
        "INSERT INTO sized SELECT n, repeat('x', 100) FROM generate_series(1, 20000) AS n",
        "ANALYZE sized",
    )
    sizes = with_after(before, asking)
    then = {(one.name, one.kind): one for one in sizes.before}
    now = {(one.name, one.kind): one for one in sizes.after}
    assert then["sized", "table"].bytes == 0
    assert now["sized", "table"].bytes > 20_000 * 100
    assert now["sized", "table"].rows_estimate == 20_000
    assert now["sized_pkey", "index"].table == "sized"
    assert now["forgetful", "table"].unlogged
    assert any(one.kind == "toast" and one.table == "sized" for one in sizes.after)
    assert not any(one.schema_name == "pg_catalog" for one in sizes.after)
    assert sizes.database_bytes_after is not None
    assert sizes.database_bytes_after > sizes.database_bytes_before


@pytest.fixture
def clean(any_server: Server) -> Iterator[None]:
    execute(
        any_server,
        "DROP SCHEMA IF EXISTS d CASCADE",
        "CREATE SCHEMA d CREATE TABLE logged (n int) CREATE UNLOGGED TABLE notes (n int)",
    )
    yield
    execute(any_server, "DROP SCHEMA d CASCADE", "ALTER ROLE ALL RESET synchronous_commit")


def durability_of(server: Server, asking: Session, *statements: str) -> Durability:
    """Class of a load that runs these statements, one transaction each, in one session."""
    assert server.data is not None
    before = read_settled_writes(asking)
    with psycopg.connect(
        server.conninfo, autocommit=True, password=server.password or ""
    ) as connection:
        shown = connection.execute("SHOW synchronous_commit").fetchone()
        for statement in statements:
            connection.execute(statement.encode())
    assert shown is not None
    load = LoadFacts(
        scripts={"load.sql": ";\n".join(statements)},
        committed=len(statements),
        commit=shown[0],
    )
    storage = server_storage(asking, Local(), server.data)
    return classify(gather(asking, before, load, storage))


@pytest.mark.usefixtures("clean")
def test_a_plain_write_is_local(any_server: Server, asking: Session) -> None:
    found = durability_of(any_server, asking, "INSERT INTO d.logged SELECT generate_series(1, 7)")
    assert found.label == "D2"
    assert any("7 rows of 1 table" in text for text in found.because)
    assert any("synchronous_commit = on in a session of the load" in text for text in found.because)


@pytest.mark.usefixtures("clean")
def test_reading_has_no_class(any_server: Server, asking: Session) -> None:
    found = durability_of(any_server, asking, *["SELECT count(*) FROM d.logged"] * 50)
    assert found.label == "none"


@pytest.mark.usefixtures("clean")
def test_unlogged_tables_are_named(any_server: Server, asking: Session) -> None:
    found = durability_of(
        any_server, asking, "INSERT INTO d.notes VALUES (1)", "INSERT INTO d.logged VALUES (1)"
    )
    assert found.label == "D2 +unlogged"
    assert found.unlogged_tables == ("d.notes",)


@pytest.mark.usefixtures("clean")
def test_a_role_default_is_seen_in_the_load_session(any_server: Server, asking: Session) -> None:
    execute(any_server, "ALTER ROLE ALL SET synchronous_commit = off")
    found = durability_of(any_server, asking, "INSERT INTO d.logged VALUES (1)")
    assert found.label == "D1"
    assert any("all roles sets synchronous_commit = off" in text for text in found.because)
    assert any("3 × 300ms" in text for text in found.because)


@pytest.mark.usefixtures("clean")
def test_a_function_clause_does_not_reach_the_commit(any_server: Server, asking: Session) -> None:
    execute(
        any_server,
        "CREATE FUNCTION d.f() RETURNS void LANGUAGE sql SET synchronous_commit = off "
        "AS 'INSERT INTO d.logged VALUES (1)'",
    )
    found = durability_of(any_server, asking, "SELECT d.f()")
    assert found.label == "D2"
    assert any("for itself only" in text for text in found.because)


@pytest.mark.usefixtures("clean")
def test_a_function_body_reaches_the_commit(any_server: Server, asking: Session) -> None:
    execute(
        any_server,
        "CREATE FUNCTION d.f() RETURNS void LANGUAGE plpgsql AS 'BEGIN "
        "SET LOCAL synchronous_commit TO off; INSERT INTO d.logged VALUES (1); END'",
    )
    assert durability_of(any_server, asking, "SELECT d.f()").label == "D1"
    other = durability_of(any_server, asking, "INSERT INTO d.logged VALUES (1)")
    assert other.label == "D2"


def test_a_lost_connection_is_made_again(any_server: Server) -> None:
    observer = PostgresObserver(
        conninfo=any_server.conninfo, table=DATABASE, password=any_server.password
    )
    observer.begin()
    try:
        execute(
            any_server,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'pgdyno observer'",
        )
        with pytest.raises(PgdynoError, match="query 'database' failed"):
            observer.sample()
        assert len(list(observer.sample())) == 1
    finally:
        observer.end()
