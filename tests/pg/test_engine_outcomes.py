"""Every transaction ends as what it was: retries, lost connections, time limits, COPY, records."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgdyno.contract import HistoryEvent, LoggedTransaction, TransactionType
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.provision import provision
from tests.pg.engine_runs import (
    EngineRun,
    assert_adds_up,
    end_engine,
    run_engine,
    start_engine,
    write_plan,
)

pytestmark = pytest.mark.pg

CONFLICT = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT n FROM counts WHERE k = 1;\n"
    "UPDATE counts SET n = n + 1 WHERE k = 1;\nCOMMIT;\n"
)
DEADLOCK = (
    "\\set a 1 + :client_id % 2\n\\set b 3 - :a\nBEGIN;\n"
    "UPDATE counts SET n = n + 1 WHERE k = :a;\n\\sleep 2 ms\n"
    "UPDATE counts SET n = n + 1 WHERE k = :b;\nCOMMIT;\n"
)
# Each try of a client inserts its own number: what the history calls `sequence`.
LEDGER = "\\set seq :seq + 1\nINSERT INTO ledger VALUES (:client_id, :seq);\n"
LEDGER_IN_BLOCK = (
    "\\set seq :seq + 1\nBEGIN;\nINSERT INTO ledger VALUES (:client_id, :seq);\nCOMMIT;\n"
)


def fill(conninfo: str) -> None:
    """The tables of these tests."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("CREATE TABLE counts (k int PRIMARY KEY, n bigint NOT NULL)")
        connection.execute("INSERT INTO counts SELECT k, 0 FROM generate_series(1, 10) k")
        connection.execute("CREATE TABLE ledger (client int, seq int)")


@pytest.fixture
def counts(database: str) -> str:
    """A database with a table of counts and a ledger."""
    fill(database)
    return database


def ask(conninfo: str, query: str) -> int:
    """One number from the server."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def history(run: EngineRun) -> list[HistoryEvent]:
    """Every line of `history.jsonl`."""
    lines = (run.folder / "history.jsonl").read_text().splitlines()
    return [HistoryEvent.model_validate_json(line) for line in lines]


def wait_until(committed: int, folder: Path) -> None:
    """Until so many transactions are in the lines written."""
    deadline = time.monotonic() + 30
    path = folder / "out/intervals.jsonl"
    while True:
        lines = path.read_text().splitlines() if path.exists() else []
        done = sum(json.loads(line)["counters"]["committed"] for line in lines)
        if done >= committed:
            return
        assert time.monotonic() < deadline, f"only {done} transactions committed"
        time.sleep(0.02)


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_serialization_failures_are_tried_again(counts: str, tmp_path: Path, protocol: str) -> None:
    run = run_engine(
        tmp_path,
        counts,
        CONFLICT,
        transactions_per_client=50,
        clients=8,
        protocol=protocol,
        retry={"max_tries": 0},
    )
    assert run.status == 0, run.error
    measurement = run.summary.measurement
    assert (measurement.committed, measurement.failed.total) == (400, 0)
    assert measurement.retries >= measurement.retried > 0
    assert ask(counts, "SELECT n FROM counts WHERE k = 1") == 400
    # Every failed try is an error of a statement; only the last one of each transaction commits.
    assert sum(error.count for error in run.summary.errors) == measurement.retries
    assert {error.sqlstate for error in run.summary.errors} == {"40001"}
    assert run.summary.server_commits == 400
    assert_adds_up(run)


def test_tries_are_limited(counts: str, tmp_path: Path) -> None:
    run = run_engine(
        tmp_path,
        counts,
        CONFLICT,
        transactions_per_client=50,
        clients=8,
        retry={"max_tries": 2},
    )
    measurement = run.summary.measurement
    assert measurement.failed.serialization > 0
    assert measurement.committed + measurement.failed.serialization == 400
    assert measurement.retries == measurement.retried >= measurement.failed.serialization
    errors = sum(error.count for error in run.summary.errors)
    assert errors == measurement.retries + measurement.failed.serialization
    assert ask(counts, "SELECT n FROM counts WHERE k = 1") == measurement.committed
    assert_adds_up(run)


def test_deadlocks_are_tried_again_and_their_time_counts(tmp_path: Path) -> None:
    with provision(SystemChoice(settings={"deadlock_timeout": "20ms"}), Local()) as server:
        fill(server.conninfo)
        run = run_engine(
            tmp_path,
            server.conninfo,
            DEADLOCK,
            clients=2,
            transactions_per_client=20,
            retry={"max_tries": 100},
        )
        total = ask(server.conninfo, "SELECT sum(n) FROM counts")
    measurement = run.summary.measurement
    assert (measurement.committed, measurement.failed.total) == (40, 0)
    assert measurement.retried > 0 and total == 80
    assert {error.sqlstate for error in run.summary.errors} == {"40P01"}
    # A retried one waited for the deadlock timeout before its last try even began.
    assert run.summary.times.service.max_ns > 20_000_000
    assert_adds_up(run)


def test_a_crash_is_an_outage_and_the_clients_come_back(tmp_path: Path) -> None:
    """One backend killed: the server ends all sessions, recovers by itself, and is used again."""
    with provision(SystemChoice(settings={"synchronous_commit": "on"}), Local()) as server:
        fill(server.conninfo)
        plan = write_plan(
            tmp_path,
            server.conninfo,
            LEDGER_IN_BLOCK,
            clients=8,
            duration_s=600.0,
            variables={"seq": "0"},
            on_connection_loss="reconnect",
            history=True,
        )
        engine = start_engine("run", plan)
        wait_until(200, tmp_path)
        os.kill(ask(server.conninfo, BACKEND), signal.SIGKILL)
        recovered = len((tmp_path / "out/intervals.jsonl").read_text().splitlines())
        wait_for_outage_to_end(tmp_path, recovered)
        engine.send_signal(signal.SIGINT)
        run = end_engine(engine, tmp_path)
        rows = ledger_rows(server.conninfo)
    assert run.status == 130, run.error
    summary = run.summary
    (outage,) = summary.outages
    assert outage.connections_lost == 8
    assert outage.attempts >= 8 and outage.restored_ns is not None
    assert outage.without_commit_s is not None and 0.005 < outage.without_commit_s < 30
    assert outage.last_success_ns is not None and outage.first_success_ns is not None
    assert outage.last_success_ns < outage.lost_ns + 10**9
    assert outage.lost_ns < outage.first_success_ns
    connected = {line.clients_connected for line in run.intervals}
    assert 8 in connected
    measurement = summary.measurement
    assert measurement.failed.connection + measurement.unknown == 8
    assert_acknowledged_is_present(run, rows)
    assert_adds_up(run)


BACKEND = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
    " AND application_name = 'pgdyno-engine' LIMIT 1"
)


def wait_for_outage_to_end(folder: Path, lines_before: int) -> None:
    """Until an interval after the fault shows all clients back, and commits."""
    deadline = time.monotonic() + 40
    while True:
        lines = (folder / "out/intervals.jsonl").read_text().splitlines()[lines_before:]
        later = [json.loads(line) for line in lines]
        good = [line for line in later if line["clients_connected"] == 8]
        if (
            any(
                line["counters"]["failed"]["connection"] or line["counters"]["unknown"]
                for line in later
            )
            and len(good) >= 2
            and later[-1]["counters"]["committed"]
        ):
            return
        assert time.monotonic() < deadline, "the clients never came back"
        time.sleep(0.05)


def ledger_rows(conninfo: str) -> set[tuple[int, int]]:
    """What is in the ledger; the server may still be recovering."""
    deadline = time.monotonic() + 30
    while True:
        try:
            with psycopg.connect(conninfo) as connection:
                rows = connection.execute("SELECT client, seq FROM ledger").fetchall()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            found = {(int(client), int(seq)) for client, seq in rows}
            assert len(found) == len(rows)
            return found


def assert_acknowledged_is_present(run: EngineRun, rows: set[tuple[int, int]]) -> None:
    """acknowledged ⊆ present ⊆ acknowledged + unknown; what failed is absent."""
    events = history(run)
    told: dict[str, set[tuple[int, int]]] = {}
    for event in events:
        told.setdefault(event.event, set()).add((event.client, event.sequence))
    acknowledged, unknown = told.get("acknowledged", set()), told.get("unknown", set())
    failed = told.get("failed", set())
    assert acknowledged <= rows, f"lost commits: {sorted(acknowledged - rows)[:5]}"
    assert rows <= acknowledged | unknown, f"phantom: {sorted(rows - acknowledged)[:5]}"
    assert not failed & rows
    assert told["begin"] == acknowledged | unknown | failed
    whole = [run.summary.warmup, run.summary.measurement]
    assert len(acknowledged) == sum(counters.committed for counters in whole) > 0
    assert len(events) == 2 * len(told["begin"])


@pytest.mark.parametrize("script", [LEDGER, LEDGER_IN_BLOCK], ids=["autocommit", "block"])
def test_a_postmaster_ended_amid_commits_loses_nothing_acknowledged(
    tmp_path: Path, script: str
) -> None:
    data = Path("/var/tmp") / f"pgdyno-test-{os.getpid()}-{time.monotonic_ns()}"
    choice = SystemChoice(data=str(data), settings={"synchronous_commit": "on"})
    try:
        with provision(choice, Local()) as server:
            fill(server.conninfo)
            plan = write_plan(
                tmp_path,
                server.conninfo,
                script,
                clients=16,
                duration_s=600.0,
                protocol="extended",
                variables={"seq": "0"},
                history=True,
            )
            engine = start_engine("run", plan)
            wait_until(300, tmp_path)
            assert server.postmaster_pid is not None
            os.kill(server.postmaster_pid, signal.SIGQUIT)
            run = end_engine(engine, tmp_path)
        assert (run.status, run.summary.outcome) == (1, "aborted")
        measurement = run.summary.measurement
        assert measurement.unknown > 0
        assert measurement.unknown + measurement.failed.connection == 16
        assert run.summary.outages[0].connections_lost == 16
        with provision(choice, Local()) as server:
            assert_acknowledged_is_present(run, ledger_rows(server.conninfo))
        assert_adds_up(run)
    finally:
        shutil.rmtree(data, ignore_errors=True)


def test_a_request_that_takes_too_long_is_cancelled(database: str, tmp_path: Path) -> None:
    script = "SELECT pg_sleep(CASE WHEN :client_id = 0 THEN 300 ELSE 0.001 END);\n"
    run = run_engine(tmp_path, database, script, clients=3, duration_s=1.5, statement_timeout_s=0.2)
    assert run.status == 0, run.error
    summary = run.summary
    # The last one began within the measurement, and ended by its time limit, too.
    assert 5 <= summary.statement_timeouts <= 8
    # PostgreSQL signals a backend twice for one cancel request: the second signal may hit the next.
    failed = summary.measurement.failed.other
    assert summary.statement_timeouts <= failed <= 2 * summary.statement_timeouts
    assert {error.sqlstate for error in summary.errors} == {"57014"}
    assert summary.clients[0].committed == 0 and summary.clients[1].committed > 10
    assert_adds_up(run)


@pytest.fixture
def silent_address() -> Iterator[tuple[str, int]]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    kept.append(listener.accept()[0])
                except OSError:
                    return

        taker = threading.Thread(target=take, daemon=True)
        taker.start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)
        taker.join(timeout=10)
        for one in kept:
            one.close()


class Doorkeeper:
    """Lets so many connections through to a server; others wait, as in the queue of a pooler."""

    def __init__(self, backend: str, let_in: int) -> None:
        self.backend, self.left = backend, let_in
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.kept: list[socket.socket] = []
        self.threads = [threading.Thread(target=self._take, daemon=True)]
        self.threads[0].start()

    def _take(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.kept.append(client)
            if self.left > 0:
                self.left -= 1
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.backend)
                self.kept.append(server)
                for one, other in ((client, server), (server, client)):
                    thread = threading.Thread(target=_pass_on, args=(one, other), daemon=True)
                    thread.start()
                    self.threads.append(thread)

    def close(self) -> None:
        """End everything."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.kept:
            one.close()
        for thread in self.threads:
            thread.join(timeout=10)


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        return


def test_clients_without_an_answer_do_not_hang_the_start(database: str, tmp_path: Path) -> None:
    words = psycopg.conninfo.conninfo_to_dict(database)
    door = Doorkeeper(f"{words['host']}/.s.PGSQL.{words.get('port', 5432)}", let_in=3)
    try:
        conninfo = f"host=127.0.0.1 port={door.port} user={words.get('user', 'postgres')}"
        conninfo += f" dbname={words['dbname']} sslmode=disable gssencmode=disable"
        run = run_engine(
            tmp_path, conninfo, "SELECT 1;", clients=5, duration_s=0.5, connect_deadline_s=1.0
        )
    finally:
        door.close()
    assert run.status == 0, run.error
    summary = run.summary
    assert (summary.clients_asked, summary.clients_connected) == (5, 3)
    assert summary.measurement.committed > 0
    (error,) = summary.errors
    assert (error.message, error.count) == ("no session within the connect deadline", 2)
    assert {line.clients_connected for line in run.intervals} == {3}


def test_a_silent_server_is_given_up(silent_address: tuple[str, int], tmp_path: Path) -> None:
    host, port = silent_address
    conninfo = f"host={host} port={port} user=nobody sslmode=disable"
    run = run_engine(tmp_path, conninfo, "SELECT 1;", clients=2, connect_deadline_s=0.5)
    assert (run.status, run.summary.outcome) == (1, "aborted")
    assert "no session within the connect deadline" in run.error


def test_the_plan_may_say_how_many_clients_are_enough(tmp_path: Path) -> None:
    with provision(SystemChoice(settings={"max_connections": "10"}), Local()) as server:
        run = run_engine(tmp_path, server.conninfo, "SELECT 1;", clients=40, min_clients=5)
    assert run.status == 0, run.error
    summary = run.summary
    assert 5 <= summary.clients_connected <= 10
    assert summary.measurement.committed > 0
    assert any("too many clients" in error.message for error in summary.errors)
    assert_adds_up(run)


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_copy_out_is_counted(counts: str, tmp_path: Path, protocol: str) -> None:
    script = (
        "COPY (SELECT g, 'x' FROM generate_series(1, 1000) g) TO STDOUT;\n"
        "COPY (SELECT repeat('y', 300000)) TO STDOUT;\nSELECT 1;\n"
    )
    run = run_engine(
        tmp_path, counts, script, clients=2, transactions_per_client=3, protocol=protocol
    )
    assert run.status == 0, run.error
    numbers, long, after = run.summary.statements
    digits = sum(len(str(number)) for number in range(1, 1001))
    assert (numbers.rows, numbers.copy_bytes) == (6000, 6 * (digits + 3 * 1000))
    assert (long.rows, long.copy_bytes) == (6, 6 * 300_001)
    assert (after.rows, after.copy_bytes) == (6, 0)
    assert run.summary.measurement.committed == 6


def test_what_servers_may_say_besides(counts: str, tmp_path: Path) -> None:
    """Several results, NULLs, notices, parameters that change, queries that are empty."""
    script = (
        "SELECT 1\\; SELECT g FROM generate_series(1, 3) g\\; SELECT 2;\n"
        "SELECT NULL AS a, '' AS b \\gset\n"
        "DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two'; END $$;\n"
        "SET application_name = 'renamed';\nSET TimeZone = 'UTC';\n"
        "/* nothing */;\n"
        "UPDATE counts SET n = n + 1 WHERE k = 1;\n"
    )
    run = run_engine(
        tmp_path, counts, script, clients=2, transactions_per_client=5, protocol="simple"
    )
    assert run.status == 0, run.error
    summary = run.summary
    assert (summary.measurement.committed, summary.notices) == (10, 20)
    assert summary.statements[0].rows == 50
    assert ask(counts, "SELECT n FROM counts WHERE k = 1") == 10
    assert summary.errors == ()


@pytest.mark.parametrize("protocol", ["extended", "prepared"])
def test_a_sync_within_a_pipeline(counts: str, tmp_path: Path, protocol: str) -> None:
    """Each Sync commits what came before it, whatever becomes of the rest."""
    update = "UPDATE counts SET n = n + 1 WHERE k = {};\n"
    script = (
        "\\startpipeline\n"
        + update.format(1)
        + "\\syncpipeline\n"
        + update.format(2)
        + "SELECT 1 / (:client_id - 1);\n"
        + "\\syncpipeline\n"
        + update.format(3)
        + "\\endpipeline\nSELECT count(*) FROM generate_series(1, 5000);\n"
    )
    run = run_engine(
        tmp_path, counts, script, clients=2, transactions_per_client=20, protocol=protocol
    )
    assert run.status == 0, run.error
    measurement = run.summary.measurement
    assert (measurement.committed, measurement.failed.other) == (20, 20)
    with psycopg.connect(counts) as connection:
        rows = connection.execute("SELECT n FROM counts WHERE k <= 3 ORDER BY k").fetchall()
    assert [row[0] for row in rows] == [40, 20, 40]
    (error,) = run.summary.errors
    assert (error.sqlstate, error.count) == ("22012", 20)
    assert_adds_up(run)


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_copy_in_has_no_data_and_the_session_goes_on(
    counts: str, tmp_path: Path, protocol: str
) -> None:
    types = "COPY counts FROM STDIN;\n", "SELECT 1;\n"
    scripts = [
        TransactionType(name=f"t{number}", weight=1, source="t.sql", script=text)
        for number, text in enumerate(types)
    ]
    run = run_engine(
        tmp_path, counts, scripts, clients=2, transactions_per_client=50, protocol=protocol
    )
    copied, selected = (kind.counters for kind in run.summary.transaction_types)
    assert copied.failed.other == copied.scheduled > 0
    assert selected.committed == selected.scheduled > 0


def test_copy_in_within_a_pipeline_costs_the_session_only(counts: str, tmp_path: Path) -> None:
    script = "\\startpipeline\nCOPY counts FROM STDIN;\nSELECT 1;\n\\endpipeline\n"
    run = run_engine(
        tmp_path,
        counts,
        script,
        clients=2,
        transactions_per_client=3,
        protocol="extended",
        on_connection_loss="reconnect",
    )
    assert run.status == 0, run.error
    assert run.summary.measurement.failed.other == 6
    assert run.summary.outages[0].connections_lost >= 1
    assert_adds_up(run)


@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_the_sampled_log(counts: str, tmp_path: Path, rate: float) -> None:
    log = {"rate": rate, "file": "sample.jsonl"}
    run = run_engine(
        tmp_path,
        counts,
        CONFLICT,
        clients=4,
        transactions_per_client=500,
        retry={"max_tries": 2},
        transaction_log=log,
    )
    lines = (run.folder / "sample.jsonl").read_text().splitlines()
    logged = [LoggedTransaction.model_validate_json(line) for line in lines]
    assert run.summary.transaction_log_dropped == 0
    for one in logged:
        assert one.intended_start_ns == one.actual_start_ns < one.end_ns
        assert one.tries in (1, 2) and one.outcome in ("committed", "serialization")
    if rate == 1.0:
        measurement = run.summary.measurement
        committed = [one for one in logged if one.outcome == "committed"]
        assert (len(logged), len(committed)) == (2000, measurement.committed)
        assert sum(one.tries - 1 for one in logged) == measurement.retries
        spent_ns = sum(one.end_ns - one.actual_start_ns for one in committed)
        assert spent_ns == run.summary.times.service.sum_ns
    else:
        assert 140 <= len(logged) <= 260


def test_the_history_tells_every_try(counts: str, tmp_path: Path) -> None:
    run = run_engine(
        tmp_path,
        counts,
        CONFLICT,
        clients=4,
        threads=2,
        transactions_per_client=100,
        warmup_s=0.2,
        retry={"max_tries": 3},
        history=True,
    )
    events = history(run)
    by_client: dict[int, list[HistoryEvent]] = {}
    for event in events:
        by_client.setdefault(event.client, []).append(event)
    assert set(by_client) == {0, 1, 2, 3}
    for of_client in by_client.values():
        begins, ends = of_client[::2], of_client[1::2]
        assert [event.sequence for event in begins] == list(range(1, len(begins) + 1))
        for begin, end in zip(begins, ends, strict=True):
            assert (begin.event, begin.sequence) == ("begin", end.sequence)
            assert end.event in ("acknowledged", "failed") and begin.at_ns < end.at_ns
    whole = (run.summary.warmup, run.summary.measurement)
    acknowledged = sum(event.event == "acknowledged" for event in events)
    assert acknowledged == sum(counters.committed for counters in whole)
    tries = sum(counters.scheduled + counters.retries for counters in whole)
    assert len(events) == 2 * tries
