"""`pgdyno-engine load`: every row once, whatever the sections are; told as it goes; stopped."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psycopg
import pytest

from pgdyno.contract import LoadPlan, LoadProgress, LoadSection
from tests.pg.engine_runs import start_engine

pytestmark = pytest.mark.pg

DEADLINE_S = 60.0
TABLE = "CREATE TABLE t (id int NOT NULL, half int, label text)"
ROWS = """\
COPY t (id, half, label) FROM STDIN{options};
\\set half (:row - 1) / 2
:row\t:half\t:word
\\.
"""


def section(script: str, rows: int, name: str = "rows") -> LoadSection:
    return LoadSection(name=name, rows=rows, source="load.sql", script=script)


def load(
    folder: Path,
    database: str,
    *sections: LoadSection,
    connections: int = 3,
    word: str = "a\tb\\c\n'd'",
) -> tuple[int, list[LoadProgress], str]:
    """Status, progress lines and error text of one load."""
    plan = LoadPlan(
        conninfo=database, connections=connections, sections=sections, variables={"word": word}
    )
    path = folder / "load.json"
    path.write_text(plan.model_dump_json())
    engine = start_engine("load", path)
    out, error = engine.communicate(timeout=DEADLINE_S)
    return (
        engine.returncode,
        [LoadProgress.model_validate_json(line) for line in out.splitlines()],
        error,
    )


def one_row(database: str, query: str) -> tuple[object, ...]:
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
        assert row is not None
        return row


def execute(database: str, *statements: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("options", ["", " WITH (FREEZE)"])
@pytest.mark.parametrize("rows", [0, 1, 7, 60_000])
def test_every_row_is_there_once(database: str, tmp_path: Path, options: str, rows: int) -> None:
    execute(database, TABLE)
    status, progress, error = load(tmp_path, database, section(ROWS.format(options=options), rows))
    assert (status, error) == (0, "")
    counts = one_row(
        database,
        "SELECT count(*), count(DISTINCT id), coalesce(min(id), 1), coalesce(max(id), 0) FROM t",
    )
    assert counts == (rows, rows, 1, rows)
    wrong = one_row(
        database,
        "SELECT count(*) FROM t WHERE half <> (id - 1) / 2 OR label <> E'a\\tb\\\\c\\n''d'''",
    )
    assert wrong == (0,)
    if rows:
        assert progress[-1].rows_done == progress[-1].rows_total == rows
        assert progress[-1].elapsed_ns > 0


def test_frozen_rows_need_no_vacuum(database: str, tmp_path: Path) -> None:
    execute(database, TABLE)
    status, _, error = load(tmp_path, database, section(ROWS.format(options=" (FREEZE)"), 20_000))
    assert (status, error) == (0, "")
    execute(database, "ANALYZE t")
    visible = one_row(database, "SELECT relallvisible, relpages FROM pg_class WHERE relname = 't'")
    assert visible[0] == visible[1]


def test_sections_follow_each_other(database: str, tmp_path: Path) -> None:
    copy = ROWS.format(options="")
    status, progress, error = load(
        tmp_path,
        database,
        section("CREATE TABLE t (id int, half int, label text);", 0, "create"),
        section(copy, 30_000, "first"),
        section(
            "INSERT INTO t SELECT g, 0, 'sql' FROM generate_series(:lo + 30000, :hi + 30000) g;",
            25_000,
            "sql",
        ),
        section("CREATE TABLE n AS SELECT count(*) AS n, max(id) AS high FROM t;", 0, "count"),
    )
    assert (status, error) == (0, "")
    assert one_row(database, "SELECT n, high FROM n") == (55_000, 55_000)
    ended = [line.section for line in progress if line.rows_done == line.rows_total]
    assert ended == ["create", "first", "sql", "count"]


def test_data_do_not_depend_on_the_number_of_connections(database: str, tmp_path: Path) -> None:
    script = (
        "COPY t (id, half) FROM STDIN;\n\\set half random_zipfian(1, 1000, 1.1)\n:row\t:half\n\\.\n"
    )
    digests = []
    for connections in (1, 4):
        execute(database, "DROP TABLE IF EXISTS t", TABLE)
        assert load(tmp_path, database, section(script, 50_000), connections=connections)[0] == 0
        digests.append(
            one_row(database, "SELECT md5(string_agg(half::text, ',' ORDER BY id)) FROM t")
        )
    assert digests[0] == digests[1]


def test_an_error_of_the_server_names_table_and_rows(database: str, tmp_path: Path) -> None:
    execute(database, "CREATE TABLE t (id int CHECK (id <> 41234), half int, label text)")
    status, _, error = load(tmp_path, database, section(ROWS.format(options=""), 60_000))
    assert status == 1
    assert error.startswith("pgdyno-engine: error: section rows, table t, rows 40001 to 60000: ")
    assert "(SQLSTATE 23514)" in error


def test_a_frozen_load_that_fails_leaves_the_table_as_it_was(database: str, tmp_path: Path) -> None:
    execute(
        database,
        "CREATE TABLE t (id int CHECK (id < 500), half int, label text)",
        "INSERT INTO t VALUES (7)",
    )
    status, _, error = load(tmp_path, database, section(ROWS.format(options=" (FREEZE)"), 1000))
    assert (status, "23514" in error) == (1, True)
    assert one_row(database, "SELECT count(*), max(id) FROM t") == (1, 7)


def test_a_row_that_cannot_be_computed_is_named(database: str, tmp_path: Path) -> None:
    execute(database, TABLE)
    script = "COPY t (id) FROM STDIN;\n\\set id 100 / (:row - 37)\n:id\n\\.\n"
    status, _, error = load(tmp_path, database, section(script, 100))
    assert status == 1
    assert error.strip().endswith("rows 1 to 100: row 37: division by zero")


def test_every_problem_of_a_plan_is_told_before_anything_is_done(
    database: str, tmp_path: Path
) -> None:
    status, progress, error = load(
        tmp_path,
        database,
        section("CREATE TABLE t (id int);", 0),
        section("COPY t FROM STDIN;\n\\set a randon(1, 2)\n:a\n", 5),
        section("COPY t FROM STDIN;\n:nope\n", 5),
    )
    assert (status, progress) == (2, [])
    assert "load.sql:2:8: unexpected function name (randon)" in error
    assert 'load.sql:2:1: undefined variable "nope"' in error
    assert one_row(database, "SELECT to_regclass('t')") == (None,)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_what_runs(database: str, tmp_path: Path, number: signal.Signals) -> None:
    plan = LoadPlan(
        conninfo=database,
        connections=2,
        sections=(section("SELECT pg_sleep(60) WHERE :lo < :hi;", 50_000),),
    )
    path = tmp_path / "load.json"
    path.write_text(plan.model_dump_json())
    engine = start_engine("load", path)
    sleeping = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE query LIKE 'SELECT pg_sleep(60)%' AND state = 'active'"
    )
    deadline = time.monotonic() + 20
    while one_row(database, sleeping) != (2,):
        assert time.monotonic() < deadline, "the statements never ran"
        time.sleep(0.05)
    begin = time.monotonic()
    engine.send_signal(number)
    _, error = engine.communicate(timeout=DEADLINE_S)
    assert (engine.returncode, "interrupted" in error) == (130, True)
    assert time.monotonic() - begin < 10
    deadline = time.monotonic() + 10
    while one_row(database, sleeping) != (0,):
        assert time.monotonic() < deadline, "the statements run on"
        time.sleep(0.05)


def test_no_server_is_an_error_that_says_where(tmp_path: Path) -> None:
    status, _, error = load(tmp_path, f"host={tmp_path} dbname=x user=y", section("SELECT 1;", 0))
    assert status == 1
    assert f"cannot connect to socket {tmp_path}/.s.PGSQL.5432" in error
