"""The engine against a real server: its counts are the server's, by every protocol and reactor."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import psycopg
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from pgdyno.contract import Failure, TransactionType
from tests.pg.engine_runs import assert_adds_up, end_engine, run_engine, start_engine, write_plan

pytestmark = pytest.mark.pg

COUNTING = "\\set k random(1, 10)\nUPDATE counts SET n = n + 1 WHERE k = :k;\n"


@pytest.fixture
def counts(database: str) -> str:
    """A database with a table of counts."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE counts (k int PRIMARY KEY, n bigint NOT NULL)")
        connection.execute("INSERT INTO counts SELECT k, 0 FROM generate_series(1, 10) k")
    return database


def ask(conninfo: str, query: str) -> int:
    """One number from the server."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("reactor", ["io_uring", "epoll"])
def test_every_committed_transaction_is_in_the_table(
    counts: str, tmp_path: Path, protocol: str, reactor: str
) -> None:
    run = run_engine(tmp_path, counts, COUNTING, protocol=protocol, reactor=reactor, warmup_s=0.3)
    assert (run.status, run.error) == (0, "")
    summary = run.summary
    assert (summary.outcome, summary.engine.reactor) == ("completed", reactor)
    committed = summary.warmup.committed + summary.measurement.committed
    assert committed == ask(counts, "SELECT sum(n) FROM counts") > 100
    assert summary.server_commits == summary.measurement.committed
    assert summary.statements[1].rows == 0 and summary.statements[0].kind == "meta"
    assert {line.phase for line in run.intervals} == {"warmup", "measurement"}
    assert_adds_up(run)


def test_counts_are_those_of_pg_stat_database(database: str, tmp_path: Path) -> None:
    """Two autocommit statements and one block: the server commits three times a transaction."""
    script = "SELECT 1;\nSELECT 2;\nBEGIN;\nSELECT 3;\nCOMMIT;\n"
    commits = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    before = settled(database, commits)
    run = run_engine(tmp_path, database, script, transactions_per_client=50, session_settings=[])
    assert run.status == 0, run.error
    after = settled(database, commits)
    summary = run.summary
    assert (summary.measurement.committed, summary.server_commits) == (200, 600)
    # Each question of ours is one commit, too, and so is each session the engine opened.
    assert 600 <= after - before <= 600 + 40
    assert [statement.rows for statement in summary.statements] == [200, 200, 0, 200, 0]


def settled(conninfo: str, query: str) -> int:
    """A counter of the statistics, once it no longer moves by more than our own asking."""
    deadline = time.monotonic() + 15
    last = ask(conninfo, query)
    while time.monotonic() < deadline:
        time.sleep(1.1)
        now = ask(conninfo, query)
        if now - last <= 2:
            return now
        last = now
    raise AssertionError("the statistics never settled")


def test_weights_choose_and_types_are_told_apart(database: str, tmp_path: Path) -> None:
    types = [
        TransactionType(name="often", weight=3, source="a.sql", script="SELECT 1;"),
        TransactionType(name="never", weight=0, source="b.sql", script="SELECT 1 / 0;"),
        TransactionType(name="seldom", weight=1, source="c.sql", script="SELECT 2;\nSELECT 3;"),
    ]
    run = run_engine(tmp_path, database, types, transactions_per_client=500, threads=2)
    summary = run.summary
    often, never, seldom = (kind.counters.committed for kind in summary.transaction_types)
    assert (often + seldom, never) == (2000, 0)
    assert 2.5 < often / seldom < 3.6
    assert summary.engine.threads == 2
    assert_adds_up(run)


def test_an_error_fails_its_transaction_and_the_client_goes_on(counts: str, tmp_path: Path) -> None:
    script = (
        "\\set k random(1, 2)\nBEGIN;\nUPDATE counts SET n = n + 1 WHERE k = 1 + :client_id;\n"
        "SELECT 1 / (:k - 1);\nCOMMIT;\n"
    )
    run = run_engine(tmp_path, counts, script, transactions_per_client=100)
    assert run.status == 0, run.error
    measurement = run.summary.measurement
    assert measurement.scheduled == 400
    assert 100 < measurement.failed.other < 300
    # Rolled back: only what committed is in the table.
    assert ask(counts, "SELECT sum(n) FROM counts") == measurement.committed
    assert run.summary.server_commits == measurement.committed
    (error,) = run.summary.errors
    assert (error.sqlstate, error.statement, error.count) == ("22012", 4, measurement.failed.other)
    assert run.summary.statements[3].errors == measurement.failed.other
    assert_adds_up(run)


def test_serialization_failures_have_their_class(counts: str, tmp_path: Path) -> None:
    script = (
        "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT n FROM counts WHERE k = 1;\n"
        "UPDATE counts SET n = n + 1 WHERE k = 1;\nCOMMIT;\n"
    )
    run = run_engine(tmp_path, counts, script, transactions_per_client=100, clients=8)
    measurement = run.summary.measurement
    assert measurement.failed.serialization > 0
    assert measurement.committed + measurement.failed.serialization == 800
    assert ask(counts, "SELECT n FROM counts WHERE k = 1") == measurement.committed


def test_an_open_block_at_the_end_of_a_script_fails_it(counts: str, tmp_path: Path) -> None:
    script = "BEGIN;\nUPDATE counts SET n = n + 1 WHERE k = 1;\n"
    run = run_engine(tmp_path, counts, script, transactions_per_client=5, clients=1)
    assert run.summary.measurement.failed.other == 5
    assert ask(counts, "SELECT sum(n) FROM counts") == 0
    assert "block open" in run.summary.errors[0].message


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_a_failure_column_makes_failed(database: str, tmp_path: Path, protocol: str) -> None:
    kind = TransactionType(
        name="f",
        weight=1,
        source="f.sql",
        script="\\set r random(0, 1)\nSELECT 7 AS other, :r AS ret;\n",
        failure=Failure(column="ret", success="0"),
    )
    run = run_engine(tmp_path, database, [kind], transactions_per_client=100, protocol=protocol)
    measurement = run.summary.measurement
    assert 100 < measurement.failed.other < 300
    assert measurement.committed + measurement.failed.other == 400
    assert "column 'ret' is '1', not '0'" in {error.message for error in run.summary.errors}
    # The server knows nothing of it: it committed them all.
    assert run.summary.server_commits == 400


@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_copy_from_stdin_is_refused_not_hung(counts: str, tmp_path: Path, protocol: str) -> None:
    script = "COPY counts FROM STDIN;\nSELECT 1;\n"
    run = run_engine(tmp_path, counts, script, transactions_per_client=3, protocol=protocol)
    assert run.summary.measurement.failed.other == 12
    assert {error.sqlstate for error in run.summary.errors} == {"57014"}


def test_large_results_are_counted_not_kept(database: str, tmp_path: Path) -> None:
    script = "SELECT repeat('x', 100000) FROM generate_series(1, 300);\n"
    run = run_engine(tmp_path, database, script, transactions_per_client=2, clients=2)
    summary = run.summary
    assert (summary.measurement.committed, summary.statements[0].rows) == (4, 1200)
    assert summary.own_cost is not None and summary.own_cost.max_rss_bytes < 64 << 20


def test_gset_carries_values_over(counts: str, tmp_path: Path) -> None:
    script = (
        "SELECT 3 AS a, 4 AS b \\gset p_\n"
        "UPDATE counts SET n = n + :p_a::int * :p_b::int WHERE k = 1;\n"
    )
    run = run_engine(tmp_path, counts, script, transactions_per_client=5, clients=1)
    assert run.status == 0, run.error
    assert ask(counts, "SELECT n FROM counts WHERE k = 1") == 60


def test_a_meta_command_that_fails_ends_its_client(database: str, tmp_path: Path) -> None:
    script = "\\set x 1 / (:client_id - 1)\nSELECT 1;\n"
    run = run_engine(tmp_path, database, script, transactions_per_client=10, clients=3)
    assert run.status == 0
    assert run.summary.measurement.failed.other == 1
    assert [client.committed for client in run.summary.clients] == [10, 0, 10]
    run = run_engine(tmp_path, database, "\\set x 1 / 0\nSELECT 1;\n", clients=2)
    assert (run.status, run.summary.outcome) == (1, "aborted")
    assert "division by zero" in run.error


def test_think_time_spaces_starts(database: str, tmp_path: Path) -> None:
    load = {"kind": "closed", "think_time_s": 0.05}
    run = run_engine(tmp_path, database, "SELECT 1;", clients=2, load=load, duration_s=1.0)
    # 2 clients, about 20 a second each; a busy machine can only make it fewer.
    assert 20 <= run.summary.measurement.committed <= 40
    assert run.summary.times.lag is None


def test_an_open_loop_keeps_its_rate_and_shows_lag(database: str, tmp_path: Path) -> None:
    load = {"kind": "open", "rate_per_s": 200, "arrival": "constant"}
    run = run_engine(tmp_path, database, "SELECT 1;", load=load, duration_s=2.0)
    summary = run.summary
    assert 395 <= summary.measurement.scheduled <= 401
    assert summary.times.lag is not None and summary.times.response is not None
    both = summary.times.lag.sum_ns + summary.times.service.sum_ns
    assert summary.times.response.sum_ns == both
    assert_adds_up(run)


def test_an_overloaded_open_loop_queues(database: str, tmp_path: Path) -> None:
    """One client of 20/s capacity, asked for 60/s: late, and what was never started is skipped."""
    load = {"kind": "open", "rate_per_s": 60, "arrival": "constant"}
    run = run_engine(
        tmp_path,
        database,
        "SELECT pg_sleep(0.05);",
        clients=1,
        load=load,
        duration_s=1.0,
        drain_deadline_s=0.5,
    )
    measurement = run.summary.measurement
    assert 59 <= measurement.scheduled <= 61
    assert measurement.committed + measurement.in_flight_at_end <= 31
    assert measurement.skipped >= 29
    response = run.summary.times.response
    assert response is not None and response.max_ns > 500_000_000
    assert_adds_up(run)


def test_logs_hold_what_the_summary_says(counts: str, tmp_path: Path) -> None:
    run = run_engine(tmp_path, counts, COUNTING, warmup_s=0.3)
    summary = run.summary
    for name, tags in (
        ("transactions.hlog", {"t.service": summary.times.service}),
        ("statements.hlog", {"t:1": summary.statements[0].time, "t:2": summary.statements[1].time}),
    ):
        sums = {tag: HdrHistogram(1, 3600 * 10**9, 3) for tag in tags}
        reader = HistogramLogReader(str(run.folder / name), HdrHistogram(1, 3600 * 10**9, 3))
        seen = set()
        while (histogram := reader.get_next_interval_histogram()) is not None:
            seen.add(histogram.get_tag())
            if histogram.get_tag() in sums:
                sums[histogram.get_tag()].add(histogram)
        reader.close()
        assert seen == set(tags) | {f"warmup.{tag}" for tag in tags}
        for tag, series in tags.items():
            assert sums[tag].get_total_count() == series.count
            ends = sums[tag].get_min_value(), sums[tag].get_max_value()
            assert ends == pytest.approx((series.min_ns, series.max_ns), rel=0.001)


def test_the_event_stream_tells_states_and_intervals(counts: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    plan = write_plan(tmp_path, counts, COUNTING, warmup_s=0.3)
    engine = start_engine("run", plan, "--events", str(writer), pass_fds=[writer])
    os.close(writer)
    with os.fdopen(reader) as stream:
        events = [json.loads(line) for line in stream]
    run = end_engine(engine, tmp_path)
    states = [event["state"] for event in events if event["event"] == "state"]
    assert states == ["connecting", "warmup", "measuring", "draining", "done"]
    intervals = [event["interval"] for event in events if event["event"] == "interval"]
    assert intervals == [json.loads(line.model_dump_json()) for line in run.intervals]
    assert len(intervals) >= 5


def test_the_session_is_that_of_the_load(counts: str, tmp_path: Path) -> None:
    settings = ["synchronous_commit", "no_such.setting", "work_mem"]
    conninfo = counts + " options='-c synchronous_commit=off'"
    run = run_engine(tmp_path, conninfo, COUNTING, session_settings=settings)
    shown = run.summary.session_settings
    assert shown["synchronous_commit"] == "off"
    assert set(shown) == {"synchronous_commit", "work_mem"}
    assert run.summary.server_version
