"""Loading workloads into a real server: data, reuse, adoption, refusal, progress, mistakes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from pgdyno.engine import find_engine
from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.hosts.local import Local
from pgdyno.servers.base import Server
from pgdyno.workloads import catalog
from pgdyno.workloads.checking import take_snapshot
from pgdyno.workloads.definition import ResolvedWorkload
from pgdyno.workloads.flushing import wal_kept_flushed
from pgdyno.workloads.judging import judge_load
from pgdyno.workloads.loading import LoadRequest, LoadStatus, load
from pgdyno.workloads.resolving import resolve
from pgdyno.workloads.rows import Loader
from pgdyno.workloads.side_by_side import run_side_by_side
from pgdyno.workloads.state import identify
from pgdyno.workloads.target import Target

pytestmark = pytest.mark.pg

SMALL = {
    "noop": {},
    "tpcb": {"scale": "1"},
    "simple-update": {"scale": "1"},
    "select-only": {"scale": "1"},
    "userlogin": {"users": "1000"},
}
SEED_OF_2014 = {
    "users": "1003",
    "shards": "5",
    "functions": "sql",
    "log_tables": "unlogged",
    "transactions": "both",
}


def small(name: str, **parameters: str) -> ResolvedWorkload:
    return resolve(catalog.find(name), SMALL[name] | parameters)


def request(database: str, *, reload: bool = False) -> LoadRequest:
    loader = Loader(engine=find_engine(), host=Local(), connections=2)
    target = Target(conninfo=database, initdb_options=("--locale=C",))
    return LoadRequest(target=target, loader=loader, reload=reload, memory_bytes=2**30)


def assert_checks_hold(workload: ResolvedWorkload, database: str, *, reused: bool = False) -> None:
    snapshot = take_snapshot(workload, Target(conninfo=database))
    results = judge_load(workload, snapshot, reused=reused)
    assert [result for result in results if result.verdict != "held"] == []
    assert bool(results) == bool(workload.checks)


def rows(database: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def execute(database: str, statement: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_workload_loads_and_its_checks_hold(name: str, database: str) -> None:
    workload = small(name)
    report = load(workload, request(database))
    assert not report.reused
    assert_checks_hold(workload, database)
    if workload.tables:
        assert [step.name for step in report.steps] == ["create", "rows", "indexes", "vacuum"]
        assert report.steps[1].rows == workload.rows
        assert report.data_bytes and report.data_bytes > 8192
        assert report.memory_bytes == 2**30


def test_the_expected_size_is_near_the_real_one(database: str) -> None:
    for name, parameters in (("tpcb", {"scale": "2"}), ("userlogin", {"users": "60000"})):
        workload = resolve(catalog.find(name), parameters)
        report = load(workload, request(database))
        assert report.data_bytes is not None
        assert 0.9 <= workload.expected_bytes / report.data_bytes <= 1.25, name


def test_shards_of_the_seed_of_2014(database: str) -> None:
    workload = small("userlogin", **SEED_OF_2014)
    load(workload, request(database))
    assert_checks_hold(workload, database)
    edges = rows(
        database,
        "select min(userid), max(userid) from user_info_0 union all "
        "select min(userid), max(userid) from user_info_4 order by 1",
    )
    assert edges == [(1, 200), (803, 1003)]
    unlogged = rows(database, "select relname from pg_class where relpersistence = 'u' order by 1")
    assert [name for (name,) in unlogged if "rec" in str(name)] == [
        "user_login_rec",
        "user_logout_rec",
    ]


def test_rows_are_the_seeds_own(database: str) -> None:
    load(small("userlogin", users="3"), request(database))
    (row,) = rows(database, "select * from user_info where userid = 2")
    assert row[1:6] == (
        "digoal.zhou",
        "德哥",
        "DBA",
        row[4],
        "公益是一辈子的事, I'm Digoal.Zhou, Just do it!",
    )
    assert str(row[4]) == "1970-01-01" and row[6] == "digoal@126.com" and row[9] is None
    (session,) = rows(database, "select * from user_session where userid = 3")
    assert session[1:4] == (None, 0, None) and session[4] is not None
    defaults = "select attname from pg_attribute where atthasdef and attrelid = "
    assert rows(database, defaults + "'user_info'::regclass") == []
    assert len(rows(database, defaults + "'user_session'::regclass")) == 2


def test_data_are_the_same_each_time(database: str) -> None:
    fingerprint = "select md5(string_agg(t::text, '|' order by userid)) from user_info t"
    load(small("userlogin"), request(database))
    first = rows(database, fingerprint)
    load(small("userlogin"), request(database, reload=True))
    assert rows(database, fingerprint) == first


def test_loaded_data_are_used_again(database: str) -> None:
    workload = small("userlogin")
    load(workload, request(database))
    execute(database, "insert into user_login_rec select 1, now(), null")
    report = load(workload, request(database))
    assert report.reused and report.reason == "loaded data fit"
    assert [step.name for step in report.steps] == ["vacuum"]
    assert rows(database, "select count(*) from user_login_rec") == [(0,)]
    assert not load(workload, request(database, reload=True)).reused


def test_workloads_with_one_base_share_data(database: str) -> None:
    load(small("tpcb"), request(database))
    assert load(small("select-only"), request(database)).reused
    assert load(small("simple-update"), request(database)).reused


def test_another_language_of_functions_needs_no_other_data(database: str) -> None:
    load(small("userlogin"), request(database))
    report = load(small("userlogin", functions="sql"), request(database))
    assert report.reused
    languages = "select l.lanname from pg_proc p join pg_language l on l.oid = p.prolang "
    languages += "where proname like 'f_user_%'"
    assert set(rows(database, languages)) == {("sql",)}


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"users": "1001"}, "users was 1000, now 1001"),
        ({"log_tables": "unlogged"}, "log_tables was logged, now unlogged"),
        ({"shards": "2"}, "no data were there"),
    ],
)
def test_other_parameters_need_other_data(
    database: str, parameters: dict[str, str], reason: str
) -> None:
    load(small("userlogin"), request(database))
    workload = small("userlogin", **parameters)
    report = load(workload, request(database))
    assert not report.reused
    if "shards" not in parameters:
        assert report.reason == reason
    assert_checks_hold(workload, database)
    tables = rows(database, "select count(*) from pg_tables where tablename like 'user%'")
    assert tables == [(len(workload.tables),)]


def test_a_changed_initdb_option_changes_the_identity(database: str) -> None:
    workload = small("tpcb")
    one = identify(workload, Target(conninfo=database, initdb_options=("--locale=C",)))
    other = identify(workload, Target(conninfo=database, initdb_options=("--data-checksums",)))
    assert one.digest != other.digest
    assert (one.block_size, one.wal_block_size) == (8192, 8192)


def test_a_broken_off_load_is_not_taken_for_data(database: str) -> None:
    workload = small("tpcb")
    load(workload, request(database))
    execute(database, "update pgdyno.state set complete = false")
    report = load(workload, request(database))
    assert (report.reused, report.reason) == (False, "loading was broken off before")


def test_a_database_of_pgbench_is_adopted(database: str, server: Server) -> None:
    assert server.bin_dir is not None
    pgbench = [str(server.bin_dir / "pgbench"), "--quiet", "-i", "-s", "2", database]
    subprocess.run(pgbench, check=True, capture_output=True, timeout=60)
    report = load(small("tpcb", scale="2"), request(database))
    assert report.reused and "someone else" in report.reason
    assert_checks_hold(small("tpcb", scale="2"), database, reused=True)
    with pytest.raises(InvalidInput) as caught:
        load(small("tpcb", scale="3"), request(database))
    assert "not made by pgdyno" in caught.value.message
    assert "row.branches = 2" in caught.value.message
    assert rows(database, "select count(*) from pgbench_branches") == [(2,)]
    assert not load(small("tpcb", scale="3"), request(database, reload=True)).reused
    assert rows(database, "select count(*) from pgbench_branches") == [(3,)]


def test_tables_of_somebody_else_are_refused(database: str) -> None:
    execute(database, "create table user_session as select 7 as answer")
    with pytest.raises(InvalidInput) as caught:
        load(small("userlogin"), request(database))
    assert "table user_session is in this database already" in caught.value.message
    assert rows(database, "select answer from user_session") == [(7,)]
    assert not load(small("userlogin"), request(database, reload=True)).reused


def test_tables_that_a_view_needs_are_not_dropped(database: str) -> None:
    load(small("tpcb"), request(database))
    execute(database, "create view v as select * from pgbench_accounts")
    with pytest.raises(PgdynoError, match="cannot be replaced"):
        load(small("tpcb"), request(database, reload=True))
    assert rows(database, "select count(*) from v") == [(100000,)]


def test_progress_is_told(database: str) -> None:
    heard: list[LoadStatus] = []
    workload = small("tpcb")
    load(workload, request(database), heard.append)
    assert list(dict.fromkeys(status.step for status in heard)) == [
        "create",
        "rows",
        "indexes",
        "vacuum",
    ]
    last = [status for status in heard if status.step == "rows"][-1]
    assert (last.rows_done, last.rows_total, last.share, last.left_s) == (100011, 100011, 1.0, 0.0)
    assert last.rows_per_s and last.rows_per_s > 1000


def folder_with(tmp_path: Path, **files: str) -> ResolvedWorkload:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "workload.toml").write_text(
        'description = "mine"\nsource = "me"\n[[tables]]\nname = "mine"\n'
        '[[transaction_types]]\nname = "t"\nfile = "t.sql"\n'
    )
    (folder / "t.sql").write_text("select 1;\n")
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text)
    return resolve(catalog.find(str(folder)), {})


def test_a_mistake_in_a_schema_is_told_with_its_line(database: str, tmp_path: Path) -> None:
    workload = folder_with(
        tmp_path, schema="create table mine (a int);\ncreate tabel other (a int);\n"
    )
    with pytest.raises(PgdynoError) as caught:
        load(workload, request(database))
    assert (
        'mine/schema.sql:2 (as rendered): syntax error at or near "tabel"' in caught.value.message
    )
    assert rows(database, "select to_regclass('mine')") == [(None,)]


def test_a_schema_must_make_what_it_names(database: str, tmp_path: Path) -> None:
    workload = folder_with(tmp_path, schema="create table hers (a int);")
    with pytest.raises(InvalidInput, match="does not make table mine"):
        load(workload, request(database))
    assert rows(database, "select to_regclass('hers')") == [(None,)]


def test_a_mistake_in_an_index_is_told_and_the_next_load_begins_anew(
    database: str, tmp_path: Path
) -> None:
    workload = folder_with(
        tmp_path,
        schema="create table mine (a int);",
        load="-- section mine: 10 rows\ninsert into mine select generate_series(:lo, :hi);\n",
        indexes="create index on mine (b);",
    )
    with pytest.raises(PgdynoError, match=r"'create index on mine \(b\)' failed: column"):
        load(workload, request(database))
    (complete,) = rows(database, "select complete from pgdyno.state")
    assert complete == (False,)


def wait_until(reached: Callable[[], bool], message: str) -> None:
    end_s = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < end_s, message
        time.sleep(0.05)


def active(database: str) -> list[tuple[object, ...]]:
    """Statements that run in this database, our own apart."""
    return rows(
        database,
        "select query from pg_stat_activity where datname = current_database() "
        "and state = 'active' and pid <> pg_backend_pid()",
    )


def test_an_interrupt_cancels_the_loading_of_rows(database: str) -> None:
    """Ctrl-C while rows are copied: nothing runs on, and the data are known to be incomplete."""
    script = (
        "import sys\n"
        "sys.path.insert(0, '.')\n"
        "from tests.pg.test_workload_loading import load, request, resolve, catalog\n"
        "load(resolve(catalog.find('tpcb'), {'scale': '200'}), request(sys.argv[1]))\n"
    )
    loading = subprocess.Popen(
        [sys.executable, "-c", script, database],
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        wait_until(lambda: any("COPY" in str(q) for (q,) in active(database)), "no COPY began")
        loading.send_signal(signal.SIGINT)
        _, said = loading.communicate(timeout=30)
    finally:
        loading.kill()
        loading.wait(timeout=10)
    assert loading.returncode != 0 and "KeyboardInterrupt" in said
    wait_until(lambda: active(database) == [], "statements run on")
    assert rows(database, "select complete from pgdyno.state") == [(False,)]
    report = load(small("tpcb"), request(database))
    assert report.reason == "loading was broken off before"


def test_an_interrupt_cancels_statements_side_by_side(database: str) -> None:
    began_s = time.monotonic()
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_side_by_side(
            Target(conninfo=database), ["select pg_sleep(60)"] * 5, 3, [], lambda done: None
        )
    timer.join(10)
    assert time.monotonic() - began_s < 20
    wait_until(lambda: active(database) == [], "statements run on")


def test_a_failing_statement_ends_the_others(database: str) -> None:
    began_s = time.monotonic()
    with pytest.raises(PgdynoError, match=r"'select 1 / 0' failed: division by zero"):
        run_side_by_side(
            Target(conninfo=database),
            ["select pg_sleep(60)", "select 1 / 0", "select pg_sleep(61)"],
            2,
            [],
            lambda done: None,
        )
    assert time.monotonic() - began_s < 20


def test_a_password_or_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PgdynoError, match="loading 'tpcb' failed"):
        load(small("tpcb"), request(f"host={tmp_path} dbname=nowhere"))


def test_a_role_without_rights_is_told_what_it_needs(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        with suppress(psycopg.errors.DuplicateObject):
            connection.execute("create role nothing login")
        connection.execute("revoke create on schema public from public")
    with pytest.raises(PgdynoError) as caught:
        load(small("tpcb"), request(database.replace("user=postgres", "user=nothing")))
    assert "permission denied" in caught.value.message


def test_keeping_wal_flushed_ends_with_the_load_and_breaks_nothing(
    database: str, tmp_path: Path
) -> None:
    with wal_kept_flushed(Target(conninfo=database)):
        wait_until(
            lambda: (
                rows(
                    database,
                    "select count(*) from pg_stat_activity "
                    "where query like '%pg_logical_emit_message%' and pid <> pg_backend_pid()",
                )
                == [(1,)]
            ),
            "nothing was flushed",
        )
    wait_until(
        lambda: (
            rows(
                database,
                "select count(*) from pg_stat_activity "
                "where query like '%pg_logical_emit_message%' and pid <> pg_backend_pid()",
            )
            == [(0,)]
        ),
        "the session is still there",
    )
    with wal_kept_flushed(Target(conninfo=f"host={tmp_path}")):
        pass
